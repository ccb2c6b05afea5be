"""The rows of an outbox that were committed since the last look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.lake.log import files_added, is_table, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

_MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Position:
    """How far an outbox was read."""

    table: str
    """The id of the table: a recomputed one has another."""
    version: int


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows that were not read before."""

    rows: tuple[Mapping[str, Any], ...]
    position: Position
    is_whole: bool
    """Whether these are all rows of the table, those that were read before among them."""
    is_lossy: bool = False
    """Whether a value has no Python equivalent and is written as text."""


class Outbox:
    """The table of an alert, read commit by commit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_verified = False
        """Whether the last position is known to be one of this very table."""

    def since(self, last: Position | None) -> Iterator[NewRows]:
        """Yield new rows, in the order of their commits.

        If the table is another than the one that was read, or its commits are gone, all rows are
        returned: `Deliveries` recognises those it has by their content.
        """
        if self._is_verified and last and files_added(self._path, last.version + 1) is None:
            return
        if not is_table(self._path):
            return
        from deltalake import DeltaTable

        table = DeltaTable(str(self._path))
        known, newest = str(table.metadata().id), int(table.version())
        begins, self._is_verified = (0 if last is None else last.version + 1), True
        is_same = last is None or last.table == known
        if not is_same or not versions(self._path).start <= begins <= newest + 1:
            yield _new_rows([table.to_pyarrow_table()], Position(known, newest), is_whole=True)
            return
        tables: list[pa.Table] = []
        for version in range(begins, newest + 1):
            tables += _tables(files_added(self._path, version) or ())
            is_enough = sum(table.num_rows for table in tables) >= _MOST_ROWS
            if is_enough or version == newest:
                yield _new_rows(tables, Position(known, version), is_whole=False)
                tables = []


def _tables(files: Iterable[Path]) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    for file in files:
        yield pq.ParquetFile(file).read()


def _new_rows(tables: Iterable[pa.Table], position: Position, *, is_whole: bool) -> NewRows:
    from millstream.alert.row import objects_of

    read = [objects_of(table) for table in tables]
    rows = tuple(row for objects, _ in read for row in objects)
    return NewRows(rows, position, is_whole, any(is_lossy for _, is_lossy in read))
