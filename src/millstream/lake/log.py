"""The log of a Delta table, read as files: what its commits told, without opening the table."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.errors import HomeDamagedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

EPOCH = "millstream.epoch"
FACTS = "millstream"
QUERY = "millstream."
"""What the transaction id of a batch begins with; the id of its query follows."""

_KIND_WITHIN = 16
"""The kind of an action is the first word of its line."""
_COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a table after its last batch; part of the commit itself."""

    query_id: str = ""
    epoch: int = 0
    batch: int = -1
    rows: int = 0
    digest: str = ""
    """Number of rows and an order-free hash of the batch, to tell a retry that differs."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the last batch added to the totals."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Sums over all batches, by verdict or rule."""
    changed: int = -1
    """The last batch that changed any row; -1 if none did."""
    greatest_event_time: int | None = None
    """In microseconds since 1970, over all batches so far."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """The version of each input a recomputed answer was made from."""

    def plus(self, counts: Mapping[str, int]) -> Facts:
        """Add a batch's counts to the totals."""
        totals = dict(self.totals)
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
        return replace(self, counts=dict(counts), totals=totals)


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table."""

    version: int
    at: datetime
    operation: str
    facts: Facts | None
    """What it told of the table; None if another program wrote it, say OPTIMIZE."""
    is_batch: bool
    """Whether it wrote a batch; a driver also commits when it takes the table over."""


def commits(table: Path) -> Iterator[Commit]:
    """Read the commits of a table, the last one first; none if nothing is committed yet.

    Raises:
        HomeDamagedError: A commit cannot be read.
    """
    log = table / "_delta_log"
    names = sorted((f.name for f in log.iterdir()), reverse=True) if log.exists() else []
    for name in names:
        if _COMMIT.fullmatch(name):
            try:
                yield _read(log / name)
            except (ValueError, KeyError, TypeError) as error:
                raise HomeDamagedError(str(log / name), why=type(error).__name__) from error


def facts_of(table: Path) -> Facts:
    """Read what the last batch told of the table at a path; commits of others are skipped."""
    return next((commit.facts for commit in commits(table) if commit.facts), Facts())


def _read(file: Path) -> Commit:
    told: dict[str, Any] = {}
    is_batch, lines = False, file.read_text().splitlines()
    if not lines:
        raise ValueError
    for line in lines:
        # The lines of files are long and many: those are not parsed.
        if any(kind in line[:_KIND_WITHIN] for kind in ('"commitInfo"', '"txn"')):
            action = json.loads(line)
            told = action.get("commitInfo", told)
            is_batch |= _is_batch(action.get("txn", {}).get("appId", ""))
    at_s = told["timestamp"] / 1000 if "timestamp" in told else file.stat().st_mtime
    facts = Facts(**json.loads(told[FACTS])) if FACTS in told else None
    at = datetime.fromtimestamp(at_s, UTC)
    return Commit(int(file.stem), at, str(told.get("operation", "")), facts, is_batch)


def _is_batch(transaction: str) -> bool:
    return transaction.startswith(QUERY) and transaction != EPOCH
