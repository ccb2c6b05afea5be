"""The log of a Delta table, read as files: the facts of its commits, without opening the table."""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from millstream.errors import fault
from millstream.lake.fence import Fence
from millstream.lake.frontier import latest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from millstream.lake.frontier import Publication

EPOCH = "millstream.epoch"
FACTS = "millstream"
FEATURE = "deletionVectors"
"""What a table asks of its readers if rows are deleted where they are."""
KEY = "millstream.key"
"""The property of a table whose batches delete rows where they are: its key columns, as JSON."""
QUERY = "millstream."
"""What the transaction id of a batch begins with; the id of its query follows."""

_KIND_WITHIN = 16
"""The kind of an action is the first word of its line."""
_COMMIT = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a table after its last batch; part of the commit itself."""

    query_id: str = ""
    epoch: int = 0
    batch: int = -1
    rows: int = 0
    digest: str = ""
    """Number of rows and an order-free hash of the batch, to detect a retry that differs."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the last batch added to the totals."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Sums over all batches, by verdict or rule."""
    changed: int = -1
    """The last batch that changed any row; -1 if none did."""
    greatest_event_time: int | None = None
    """In microseconds since 1970, over all batches so far."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """What a recomputed answer was made from, or how far a table of another app was read."""
    frontier: int | None = None
    """No change to come stems from an event before it, in microseconds since 1970; NOTHING_YET
    while nothing is complete, None if it cannot be known of this table."""
    event_time: str | None = None
    """The event-time column, if there is one."""
    delay: int | None = None
    """How far a row may come behind the greatest event time, in microseconds, if that is bounded;
    the most that it ever was."""
    quiet_since: int | None = None
    """Since when no row has come, in microseconds since 1970, if the clock moves the watermark of
    an idle source; None while its rows do."""
    mode: str = ""
    """How the table takes its answer: append, update or complete."""

    @property
    def fence(self) -> Fence:
        """What a table knows of its writer and its last batch."""
        return Fence("", self.epoch, "", self.query_id, self.batch, self.digest)

    def plus(self, counts: Mapping[str, int]) -> Facts:
        """Add a batch's counts to the totals."""
        totals = dict(self.totals)
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
        return replace(self, counts=dict(counts), totals=totals)

    def publishing(self, publication: Publication) -> Facts:
        """Add what is published about time: a frontier never goes back, a delay never shrinks."""
        delays = [delay for delay in (self.delay, publication.delay) if delay is not None]
        return replace(
            self,
            frontier=latest(self.frontier, publication.frontier),
            event_time=publication.event_time,
            delay=max(delays) if publication.delay is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table."""

    version: int
    at: datetime
    operation: str
    facts: Facts | None
    """The facts it recorded; None if another program wrote it, say OPTIMIZE."""
    is_batch: bool
    """Whether it wrote a batch; a driver also commits when it takes the table over."""


def is_table(folder: Path) -> bool:
    """Return whether a folder is a table; one whose very first commit was cut short is not yet.

    Of such a commit delta-rs leaves a file with a number after its name, `…0.json#1`.
    """
    try:
        with os.scandir(folder / "_delta_log") as files:
            return any("#" not in file.name for file in files)
    except (FileNotFoundError, NotADirectoryError):
        return False


def commits(table: Path, *, up_to: int | None = None) -> Iterator[Commit]:
    """Read the commits of a table, the last one first; none if nothing is committed yet.

    Raises:
        HOME_DAMAGED: A commit cannot be read.
    """
    log = table / "_delta_log"
    names = sorted((f.name for f in log.iterdir()), reverse=True) if log.exists() else []
    for name in names:
        if _COMMIT.fullmatch(name) and (up_to is None or int(name[:-5]) <= up_to):
            try:
                yield _read(log / name)
            except (ValueError, KeyError, TypeError) as error:
                raise fault(
                    "HOME_DAMAGED", file=str(log / name), why=type(error).__name__
                ) from error


def commit_of(table: Path, version: int) -> Commit | None:
    """Read the commit of a version; None if it is not there, or not as it was written."""
    try:
        return _read(commit_path(table, version))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def facts_of(table: Path, *, version: int | None = None) -> Facts:
    """Read the facts of the last batch of a table, now or at a version; skip commits of others.

    Before its first batch a table has empty facts.
    """
    seen = commits(table, up_to=version)
    return next((commit.facts for commit in seen if commit.facts), Facts())


def commit_checksum(table: Path, version: int) -> int | None:
    """Sum up the commit of a version, to know it again; None if it is not there."""
    try:
        return zlib.crc32(commit_path(table, version).read_bytes())
    except FileNotFoundError:
        return None


def files_added(table: Path, version: int) -> tuple[Path, ...] | None:
    """Name the files that a version added rows by; None if there is no such commit."""
    try:
        added = actions(table, version, "add")
        return tuple(table / unquote(add["path"]) for add in added if add["dataChange"])
    except FileNotFoundError:
        return None


def files_written(table: Path, version: int) -> tuple[Path, ...]:
    """Name all files that a version brought, those of the change feed and of deletions too."""
    brought = (*actions(table, version, "add"), *actions(table, version, "cdc"))
    return tuple(chain.from_iterable(_files_of(table, action) for action in brought))


def files_removed(table: Path, version: int) -> tuple[Path, ...]:
    """Name the files that a version removed; it may have added one again, with more deletions."""
    gone = actions(table, version, "remove")
    return tuple(chain.from_iterable(_files_of(table, action) for action in gone))


def facts_at(table: Path, version: int) -> Facts | None:
    """Read the facts that a version itself recorded; None if it has none or is gone."""
    found = next(commits(table, up_to=version), None)
    return found.facts if found is not None and found.version == version else None


def checkpoints(table: Path) -> list[int]:
    """Say which versions can be read without the commits before them."""
    log = table / "_delta_log"
    names = (file.name for file in log.iterdir()) if log.exists() else ()
    return sorted(int(name[:20]) for name in names if _CHECKPOINT.fullmatch(name))


def first_version(table: Path) -> int:
    """Say which version is the first that can still be read."""
    return 0 if commit_path(table, 0).exists() else min(checkpoints(table), default=0)


def commit_path(table: Path, version: int) -> Path:
    """Where the commit of a version is."""
    return table / "_delta_log" / f"{version:020d}.json"


def checkpoint_path(table: Path, version: int) -> Path:
    """Where the checkpoint of a version is, if there is one."""
    return table / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def actions(table: Path, version: int, kind: str) -> Iterator[dict[str, Any]]:
    """Read the actions of one kind of a version.

    Raises:
        FileNotFoundError: There is no such commit.
    """
    return (action for _, action in actions_of(table, version, [kind]))


def actions_of(
    table: Path, version: int, kinds: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the actions of some kinds of a version, each with its kind.

    Raises:
        FileNotFoundError: There is no such commit.
    """
    for line in commit_path(table, version).read_text().split("\n"):
        # The lines of files are long and many: others are not parsed.
        for kind in kinds:
            if f'"{kind}"' in line[:_KIND_WITHIN]:
                yield kind, json.loads(line)[kind]


def versions(table: Path) -> range:
    """Say which versions the log of a table still has commits of."""
    log = table / "_delta_log"
    names = (file.name for file in log.iterdir()) if log.exists() else ()
    found = [int(name[:-5]) for name in names if _COMMIT.fullmatch(name)]
    return range(min(found), max(found) + 1) if found else range(0)


def _files_of(table: Path, action: Mapping[str, Any]) -> Iterator[Path]:
    yield table / unquote(action["path"])
    if described := action.get("deletionVector"):
        # Slow to import, and few tables need it.
        from millstream.lake.deletion_vector import Vector

        vector = Vector.from_log(described)
        if vector and (file := vector.file(table)):
            yield file


def _read(file: Path) -> Commit:
    info: dict[str, Any] = {}
    is_batch, text = False, file.read_text()
    if not text:
        raise ValueError
    for line in text.split("\n"):
        # The lines of files are long and many: those are not parsed.
        if any(kind in line[:_KIND_WITHIN] for kind in ('"commitInfo"', '"txn"')):
            action = json.loads(line)
            info = action.get("commitInfo", info)
            is_batch |= _is_batch(action.get("txn", {}).get("appId", ""))
    at_s = info["timestamp"] / 1000 if "timestamp" in info else file.stat().st_mtime
    facts = Facts(**json.loads(info[FACTS])) if FACTS in info else None
    at = datetime.fromtimestamp(at_s, UTC)
    return Commit(int(file.stem), at, str(info.get("operation", "")), facts, is_batch)


def _is_batch(transaction: str) -> bool:
    return transaction.startswith(QUERY) and transaction != EPOCH
