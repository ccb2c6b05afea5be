"""What a table has gained since a version: how many files and rows, in whole versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.lake.log import actions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Backlog:
    """Some versions of a table, one after the other."""

    files: int = 0
    """That add rows; those of a compaction do not."""
    rows: int = 0


def backlog(table: Path, first: int, *, most_rows: int) -> Backlog:
    """Count what comes first in a table from a version on.

    Only whole versions are counted: one at least that has rows, and as many as have no more than
    `most_rows` together.
    """
    files = rows = 0
    for added in _added(table, first):
        if rows and rows + sum(added) > most_rows:
            break
        files, rows = files + len(added), rows + sum(added)
    return Backlog(files, rows)


def rows_between(table: Path, first: int, end: int) -> int:
    """Count the rows that versions from `first` to before `end` add, as far as they are there."""
    found = zip(range(first, end), _added(table, first), strict=False)
    return sum(sum(rows) for _, rows in found)


def _added(table: Path, first: int) -> Iterator[list[int]]:
    """Yield the rows of each file that a version adds, one version after the other."""
    version = first
    while True:
        try:
            added = [add for add in actions(table, version, "add") if add["dataChange"]]
        except FileNotFoundError:
            return
        yield [json.loads(add.get("stats") or "{}").get("numRecords", 0) for add in added]
        version += 1
