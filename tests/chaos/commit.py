"""A Delta log as it lies on disk: what each commit of a table added, and what it says of itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from millstream.lake.log import EPOCH, FACTS, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_BATCH = "millstream."


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table."""

    version: int
    at: float
    """When it came to be, in seconds since 1970."""
    added: Mapping[str, int]
    """The files it adds, and how many rows it says they have."""
    removed: frozenset[str]
    epoch: int | None
    """The epoch of the driver that wrote it; None if it was no driver."""
    batch: int | None
    """The batch it records; None if it records none."""
    facts: Facts
    metrics: Mapping[str, int]
    """What a merge says it did."""
    is_rewrite: bool
    """Whether its files only take the place of others: no row is new."""


def read_commits(table: Path, after: int = -1) -> Iterator[Commit]:
    """Read every commit after a version, up to the latest or to the first that is missing."""
    for version in range(after + 1, latest_version(table) + 1):
        if not _file(table, version).exists():
            return
        yield read_commit(table, version)


def read_commit(table: Path, version: int) -> Commit:
    """Read one commit."""
    file = _file(table, version)
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    marks = {a["txn"]["appId"]: int(a["txn"]["version"]) for a in actions if "txn" in a}
    epoch = marks.pop(EPOCH, None)
    batches = [number for name, number in marks.items() if name.startswith(_BATCH)]
    return Commit(
        version=version,
        at=file.stat().st_mtime,
        added={unquote(a["add"]["path"]): _rows(a["add"]) for a in actions if "add" in a},
        removed=frozenset(unquote(a["remove"]["path"]) for a in actions if "remove" in a),
        epoch=epoch,
        batch=batches[0] if batches else None,
        facts=Facts(**json.loads(info[FACTS])) if FACTS in info else Facts(),
        is_rewrite=any("add" in a and not a["add"]["dataChange"] for a in actions),
        metrics=info.get("operationMetrics", {}) if info.get("operation") == "MERGE" else {},
    )


def latest_version(table: Path) -> int:
    """Find the latest version of a table; -1 if it has none."""
    log = table / "_delta_log"
    if not log.exists():
        return -1
    names = (file.stem for file in log.glob("*.json"))
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def _rows(add: Mapping[str, Any]) -> int:
    return int(json.loads(add.get("stats") or "{}").get("numRecords", -1))
