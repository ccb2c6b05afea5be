"""Small files of a table become large ones; each has the rows of consecutive batches, in order.

delta-rs compacts too, but in the order of its log, which is not that of batches after the first
compaction, and it writes the rows between looking at the table and committing, so that a batch
committed meanwhile costs it all its work. Here the files are written first, and one commit names
them: docs/decisions/0018-maintenance.md.
"""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, TypeVar

from millstream.lake.files import DataFile
from millstream.lake.log import FEATURE
from millstream.lake.rows import fitted, live_rows, plain_schema
from millstream.lake.stored import is_safe, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from deltalake import DeltaTable

    from millstream.lake.deletion_vector import Positions
    from millstream.lake.delta import FencedTable
    from millstream.lake.stored import StoredFile

    Group = tuple[StoredFile, ...]
    Keep = Callable[[pa.RecordBatch], pa.RecordBatch]
    Between = Callable[[Callable[[], bool]], bool]

T = TypeVar("T")

_LOWEST = 19
_ROWS_AT_ONCE = 65_536
_QUIET_MS = 24 * 3_600_000
"""A partition without a new file for so long, such as a day that is over, gets few any more."""


def at_once(act: Callable[[], bool]) -> bool:
    """Do something now: nothing else is running."""
    return act()


@dataclass(frozen=True, slots=True)
class FileSizes:
    """When small files become one, and how large that may be."""

    target: int = 128 << 20
    """Bytes that a file has at most, if one batch has not more."""
    together: int = 16
    """How many files next to each other, all of them small, become one."""
    most_deleted: float = 0.2
    """Which share of the rows of a file may be deleted where they are, before it is rewritten."""
    merged: int = 64 << 20
    """Bytes of an update table from which on a batch no longer rewrites what it changes."""

    @property
    def tiers(self) -> tuple[int, ...]:
        """Below which sizes files count as equally small: so a row is written a few times only."""
        return self.target // 512, self.target // 32, self.target // 2


SIZES = FileSizes()


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of small files."""

    before: int = 0
    after: int = 0
    bytes_read: int = 0

    def plus(self, other: Compacted) -> Compacted:
        """Add up."""
        return Compacted(
            self.before + other.before,
            self.after + other.after,
            self.bytes_read + other.bytes_read,
        )


def plan(
    files: Sequence[StoredFile], sizes: FileSizes = SIZES, *, now_ms: int | None = None
) -> tuple[Group, ...]:
    """Choose the files that become one, group by group, the smallest groups first.

    Args:
        files: Those of the table.
        sizes: When they are small.
        now_ms: The time, if partitions that get no more files are to have as few as possible.
    """
    found: list[Group] = []
    for _, partition in groupby(files, lambda file: str(file.partition)):
        of_partition = tuple(partition)
        newest = max(file.modified_ms for file in of_partition)
        is_quiet = now_ms is not None and newest < now_ms - _QUIET_MS
        together = 2 if is_quiet else sizes.together
        for tier in sizes.tiers[-1:] if is_quiet else sizes.tiers:
            chosen = [g for g in _runs(of_partition, tier, sizes) if len(g) >= together]
            if chosen:
                found += chosen
                break
        taken = {file.path for group in found for file in group}
        found += [(f,) for f in of_partition if _is_worn(f, sizes) and f.path not in taken]
    return tuple(sorted(found, key=lambda group: sum(file.size for file in group)))


def can_compact(table: DeltaTable) -> bool:
    """Return whether the files of a table are all that it consists of."""
    return not ({*(table.protocol().reader_features or ())} - {"timestampNtz", FEATURE})


def compact(
    table: FencedTable, group: Group, staging: Path, between: Between = at_once
) -> Compacted:
    """Write the files of a group as one, and put it in their place.

    Args:
        table: The table.
        group: The files.
        staging: An existing folder.
        between: Calls a function at a moment when it delays no batch.
    """
    name = name_of(group, table.epoch)
    left_out = table.deleted(group)

    def write() -> tuple[DataFile, ...]:
        files = rewritten(table.path, group, staging, deleted=left_out)
        for file in files:
            table.index(name, file)
        return files

    files = at_lowest_priority(write)
    written = dict.fromkeys([name], files[0]) if files else {}
    if not between(lambda: table.rewrite(group, written, left_out)):
        for file in files:
            file.path.unlink(missing_ok=True)
        return Compacted()
    return Compacted(len(group), len(written), sum(file.size for file in group))


def compact_all(table: FencedTable, staging: Path, sizes: FileSizes = SIZES) -> Compacted:
    """Compact until nothing is small any more."""
    done = Compacted()
    while groups := plan(table.stored(), sizes):
        before = done
        for group in groups:
            done = done.plus(compact(table, group, staging))
        if done == before:
            break
    return done


def rewritten(
    table: Path,
    group: Group,
    staging: Path,
    keep: Keep = lambda rows: rows,
    deleted: Mapping[str, Positions] | None = None,
) -> tuple[DataFile, ...]:
    """Write the rows of files, in their order, into one file of a folder; none if no row is left.

    Args:
        table: Where the files are.
        group: The files; all of one partition.
        staging: An existing folder.
        keep: Returns the rows of a batch that are written.
        deleted: By the paths of files, positions of rows that are left out.
    """
    # Slow to import, and a look at a table needs none of it.
    import pyarrow as pa
    import pyarrow.parquet as pq

    from millstream.lake.parquet import PartFile

    paths = {table / file.path: (deleted or {}).get(file.path) for file in group}
    schema = pa.unify_schemas([plain_schema(pq.read_schema(path)) for path in paths])
    part, rows = PartFile(staging, json.dumps(dict(group[0].partition))), 0
    for path, gone in paths.items():
        with pq.ParquetFile(path) as file:
            for batch in live_rows(file.iter_batches(_ROWS_AT_ONCE, use_threads=False), gone):
                kept = keep(fitted(batch, schema))
                rows += kept.num_rows
                part.add(kept)
    if not rows:
        part.drop()
        return ()
    name, _ = part.close()
    # Spark reads the files of a snapshot by age: the new one has that of those in it.
    at = max(file.modified_ms for file in group) * 1_000_000
    os.utime(staging / name, ns=(at, at))
    return (DataFile.read(staging / name, group[0].partition),)


def at_lowest_priority(act: Callable[[], T]) -> T:
    """Do what takes long in a thread that yields to all others.

    The commit after it has the usual priority: a batch may be waiting for it.
    """
    with ThreadPoolExecutor(1, "compaction", initializer=_yield_to_others) as thread:
        return thread.submit(act).result()


def _yield_to_others() -> None:
    # On Linux each thread has a priority of its own.
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)


def _runs(files: Sequence[StoredFile], tier: int, sizes: FileSizes) -> Iterator[Group]:
    """Cut small files next to each other into groups; a batch is not in two of them."""
    for is_small, neighbours in groupby(files, lambda f: f.size < tier and is_safe(f)):
        if is_small:
            yield from _cut([*neighbours], sizes.target)


def _cut(files: list[StoredFile], target: int) -> Iterator[Group]:
    begin = 0
    size = files[0].size
    for number, (before, file) in enumerate(pairwise(files), 1):
        if size + file.size > target and (not file.batches or file.batches != before.batches):
            yield tuple(files[begin:number])
            begin, size = number, 0
        size += file.size
    yield tuple(files[begin:])


def _is_worn(file: StoredFile, sizes: FileSizes) -> bool:
    return is_safe(file) and 0 < file.deleted >= sizes.most_deleted * file.rows
