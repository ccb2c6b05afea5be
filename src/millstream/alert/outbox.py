"""The rows of an outbox that were committed since it was looked at last."""

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
    """The id of the table: one that is computed anew has another."""
    version: int


@dataclass(frozen=True, slots=True)
class News:
    """Rows that were not read before."""

    rows: tuple[Mapping[str, Any], ...]
    position: Position
    is_whole: bool
    """Whether these are all rows of the table, those that were read before among them."""


class Outbox:
    """The table of an alert, read commit by commit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_held = False
        """Whether the last position is known to be one of this very table."""

    def since(self, last: Position | None) -> Iterator[News]:
        """Give what is new, in the order of its commits.

        If the table is another than the one that was read, or its commits are gone, all of it is
        given: whoever knows a row by its content finds out what is new.
        """
        if self._is_held and last and files_added(self._path, last.version + 1) is None:
            return
        if not is_table(self._path):
            return
        from deltalake import DeltaTable

        table = DeltaTable(str(self._path))
        known, newest = str(table.metadata().id), int(table.version())
        begins, self._is_held = (0 if last is None else last.version + 1), True
        is_same = last is None or last.table == known
        if not is_same or not versions(self._path).start <= begins <= newest + 1:
            rows = tuple(_rows([table.to_pyarrow_table()]))
            yield News(rows, Position(known, newest), is_whole=True)
            return
        rows = ()
        for version in range(begins, newest + 1):
            rows += tuple(_rows(_tables(files_added(self._path, version) or ())))
            if len(rows) >= _MOST_ROWS or version == newest:
                yield News(rows, Position(known, version), is_whole=False)
                rows = ()


def _tables(files: Iterable[Path]) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    for file in files:
        yield pq.ParquetFile(file).read()


def _rows(tables: Iterable[pa.Table]) -> Iterator[Mapping[str, Any]]:
    from millstream.sinks.store.value import as_objects

    for table in tables:
        yield from as_objects(table)
