"""The contract of functions as sinks: what one survives when a driver calls it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from millstream.errors import Location
from millstream.lake.fence import PendingBatch
from millstream.serve.fence import Driver
from millstream.serve.shape import Column, Shape
from millstream.testing.contract.report import Report
from millstream.testing.contract.sink import DiesError, check_sink, judge, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from millstream.serve.store import Store as Open
    from millstream.systems.custom.settings import FunctionSink
    from millstream.testing.contract.report import Trial

    Row = Mapping[str, Any]
    Make = Callable[[str], tuple[FunctionSink, Callable[[], Iterable[Row]]]]

_SHAPE = Shape(
    "items", "append", (Column("id", "long"), Column("text", "string")), (), Location("", 0)
)


def check_function(make: Make, folder: Path) -> Report:
    """Try a function as `check_sink` does, and with a driver that dies when it has returned.

    Args:
        make: Returns, for a name, `ms.sink(function)` into a place of that name, and a function
            that reads all rows of the place; it is called once for every driver.
        folder: For the notes of drivers.
    """
    report = check_sink(lambda name: _Called(*make(name), folder / name))
    died = _dies_when_it_has_returned(lambda: _Called(*make("noted"), folder / "noted"))
    return Report((*report.trials, died))


def _dies_when_it_has_returned(connect: Callable[[], _Called]) -> Trial:
    first = connect()
    first.open(1)
    with suppress(DiesError):
        first.write(0, rows_of(0), _die)
    second = connect()
    second.open(2)
    second.write(0, rows_of(0))
    return judge("crash when the function has returned, then a retry", second, range(1))


def _die(_: object) -> NoReturn:
    raise DiesError


class _Called:
    """A driver that hands batches to a function."""

    def __init__(self, sink: FunctionSink, read: Callable[[], Iterable[Row]], folder: Path) -> None:
        self._sink, self.read, self._folder = sink, read, folder
        self._open: Open | None = None

    def open(self, epoch: int) -> int:
        driver = Driver("contract/items", epoch, "query", folder=self._folder)
        self._open = self._sink.open(_SHAPE, driver)
        return self._open.take().batch

    def write(
        self, batch: int, rows: Iterable[Row], settle: Callable[[object], str] = lambda _: ""
    ) -> None:
        assert self._open is not None
        table = pa.Table.from_pylist([dict(row) for row in rows])
        pending = PendingBatch("query", batch, str(table.to_pylist()))
        self._open.write(pending, partial(_parts, table), settle)


def _parts(rows: pa.Table) -> list[pa.Table]:
    half = rows.num_rows // 2
    return [rows.slice(0, half), rows.slice(half)]
