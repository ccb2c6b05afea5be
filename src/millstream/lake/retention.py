"""Old versions of a table are deleted, but never one that a reader still needs.

delta-rs removes old commits and files by their age alone, in whole hours; here a version decides,
which no reader is behind: docs/decisions/0018-maintenance.md.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable

from millstream.crash import reach
from millstream.lake.durable import sync_folder
from millstream.lake.log import (
    FEATURE,
    checkpoints,
    commit_path,
    facts_at,
    files_removed,
    files_written,
    versions,
)
from millstream.lake.stored import INDEX_FOLDER, indexed_file, stored_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from millstream.lake.delta import FencedTable

MOST_VERSIONS = 10_000
"""Every reader lists the log of a table: one of more commits slows each batch."""

_ENDINGS = ("json", "crc", "checkpoint.parquet")


@dataclass(frozen=True, slots=True)
class TableReader:
    """A query that reads a table version by version."""

    query: str
    home: str
    version: int
    """The last one that it has read as a whole; -1 before any."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of the past a table keeps."""

    versions: timedelta = timedelta(days=7)
    rows: timedelta | None = None
    """How long rows are kept after they were written; None: for ever."""
    most_versions: int = MOST_VERSIONS


@dataclass(frozen=True, slots=True)
class Cut:
    """From which version on a table is to be kept."""

    first: int
    waits_for: TableReader | None = None
    """The reader because of which more is kept than is declared."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Files that were deleted."""

    files: int = 0
    size: int = 0


def choose_cut(
    table: Path, retention: Retention, readers: Iterable[TableReader], now: datetime | None = None
) -> Cut:
    """Choose the first version that is kept: a checkpoint that no reader is behind."""
    there = versions(table)
    if not there:
        return Cut(0)
    cutoff = (now or datetime.now(UTC)) - retention.versions
    # The version that was the newest then can still be read.
    expired = bisect_right(
        there, cutoff.timestamp(), key=lambda v: commit_path(table, v).stat().st_mtime
    )
    declared = max(there.start + expired - 1, there.stop - 1 - retention.most_versions)
    slowest = min(readers, key=lambda reader: reader.version, default=None)
    limit = declared if slowest is None else min(declared, slowest.version)
    first, wanted = _whole_version(table, limit), _whole_version(table, declared)
    return Cut(max(first, there.start), slowest if first < wanted else None)


def cut(table: FencedTable, first: int) -> Deleted:
    """Delete all versions before one, and the files that they alone have."""
    path, log = table.path, table.path / "_delta_log"
    there, home = versions(path), table.path.parent.parent
    if not there or first <= there.start:
        return Deleted()
    table.check_epoch()
    needed = {*_active(path, first), *_brought(path, range(first + 1, there.stop))}
    gone = dict.fromkeys(
        chain.from_iterable(
            (*files_removed(path, v), *(_changes(path, v) if v < first else ()))
            for v in range(there.start, first + 1)
        )
    )
    # A reader that finds the first commit or a checkpoint begins there: these go before any file.
    for version in (0, *(v for v in checkpoints(path) if v < first)):
        _delete(log, version, ("json", "crc") if version == 0 else ("checkpoint.parquet",))
    sync_folder(log)
    reach("history_closed", home, table.name)
    deleted = delete_files(
        chain.from_iterable(
            (file, *_indexes(path, file.name)) for file in gone if file not in needed
        )
    )
    reach("old_files_deleted", home, table.name)
    for version in range(there.start, first):
        _delete(log, version, _ENDINGS)
    sync_folder(log)
    return deleted


def delete_orphans(table: FencedTable, older_than: timedelta = timedelta(days=1)) -> Deleted:
    """Delete the files that killed drivers left in the folder of a table, in no commit."""
    path = table.path
    before_s = (datetime.now(UTC) - older_than).timestamp()
    indexes = (*_indexes(path, "*"),)
    found = (
        *(file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts),
        *path.glob("deletion_vector_*.bin"),
        *(path / "_delta_log").glob(".*.draft"),
    )
    # A later driver takes the table before it writes, so nothing that was found is its own.
    table.check_epoch()
    there = versions(path)
    known = {*_active(path, table.snapshot().version()), *_brought(path, there)}
    known |= {*chain.from_iterable(files_removed(path, version) for version in there)}
    if there and there.start in (0, *checkpoints(path)):
        known |= {*_active(path, there.start)}
    found += tuple(file for file in indexes if path / indexed_file(file) not in known)
    # The batch that is being committed has its files here already.
    mine = f"-{table.epoch}-"
    return delete_files(
        file
        for file in found
        if file not in known and mine not in file.name and file.stat().st_mtime < before_s
    )


def drop_rows(table: FencedTable, keep: timedelta, now: datetime | None = None) -> int:
    """Drop the files whose rows were all written longer ago than is kept; return their rows."""
    before = ((now or datetime.now(UTC)) - keep).timestamp() * 1000
    old = [file for file in stored_files(table.snapshot()) if file.modified_ms < before]
    if not old or not table.rewrite(old, {}):
        return 0
    return sum(file.rows for file in old)


def delete_files(files: Iterable[Path]) -> Deleted:
    """Delete files, those that are gone already left out."""
    number = size = 0
    for file in files:
        try:
            length = file.stat().st_size
            file.unlink()
        except FileNotFoundError:
            continue
        number, size = number + 1, size + length
    return Deleted(number, size)


def _whole_version(table: Path, limit: int) -> int:
    """Return the last version up to a limit that can be read without those before it."""
    found = (v for v in reversed(checkpoints(table)) if v <= limit and facts_at(table, v))
    return next(found, 0)


def _active(table: Path, version: int) -> Sequence[Path]:
    opened = DeltaTable(str(table), version=version)
    if FEATURE in (opened.protocol().reader_features or ()):
        from millstream.lake.live_files import LiveFiles

        return [*LiveFiles.at(table, version).paths()]
    # Its URIs would name other paths: links are followed in them, and blanks are escaped.
    actions: Any = opened.get_add_actions()
    return [table / unquote(path) for path in actions.column("path").to_pylist()]


def _brought(table: Path, numbers: range) -> Iterable[Path]:
    return chain.from_iterable(files_written(table, v) for v in numbers)


def _changes(table: Path, version: int) -> Iterable[Path]:
    folder = table / "_change_data"
    return (file for file in files_written(table, version) if folder in file.parents)


def _indexes(table: Path, name: str) -> Iterable[Path]:
    return (table / INDEX_FOLDER).glob(f"{name}.*")


def _delete(log: Path, version: int, endings: Iterable[str]) -> None:
    for ending in endings:
        (log / f"{version:020d}.{ending}").unlink(missing_ok=True)
