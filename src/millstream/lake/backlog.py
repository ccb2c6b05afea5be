"""What a reader of a table has yet to read: how many files and rows, in whole batches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from millstream.lake.log import actions
from millstream.lake.stored import stored_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.lake.stored import StoredFile


@dataclass(frozen=True, slots=True)
class Backlog:
    """Some versions of a table one after the other, or some files of a snapshot."""

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


def snapshot_backlog(
    table: Path, first: int, *, most_rows: int, version: int | None = None
) -> Backlog:
    """Count what comes first in a snapshot from a file on, as Spark numbers them.

    Only whole batches are counted: those of the files before are complete, one at least follows,
    and as many as have no more than `most_rows` together. If no such place is left, for instance
    because another program has written to the table, all files are counted.

    Args:
        table: The table.
        first: The number of the file.
        most_rows: How many rows are wanted at most.
        version: Of the snapshot; by default the newest.
    """
    files = snapshot_files(table, version)
    rows = 0
    found = Backlog()
    ends = _ends_of_batches(files)
    for number, file in enumerate(files[first:], first + 1):
        rows += file.rows
        if found.files and rows > most_rows:
            break
        if number in ends:
            found = Backlog(number - first, rows)
    return found


def snapshot_files(table: Path, version: int | None = None) -> tuple[StoredFile, ...]:
    """List the files of a snapshot in the order in which Spark streams them."""
    files = stored_files(DeltaTable(str(table), version=version))
    return tuple(sorted(files, key=lambda file: (file.modified_ms, file.path)))


def _ends_of_batches(files: Sequence[StoredFile]) -> set[int]:
    """Say after how many files no batch is left in part, and none is earlier than those read."""
    ranges = [file.batches for file in files if file.batches]
    if len(ranges) < len(files):
        return {len(files)}
    greatest = accumulate((last for _, last in ranges), max)
    least = [*accumulate((first for first, _ in reversed(ranges)), min)][::-1]
    pairs = zip(greatest, least[1:], strict=False)
    return {len(files), *(n for n, (before, after) in enumerate(pairs, 1) if before < after)}


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
