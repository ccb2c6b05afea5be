"""Random histories of drivers, on real tables, files and databases; no server is needed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.lake.test_delta import files, opened as table_in, rows_of
from tests.systems.stores import opened, put, rows_in, table

from millstream.errors import OvertakenError
from millstream.lake.log import Facts
from millstream.systems.delta.settings import DeltaPath
from millstream.systems.files.settings import FileSink
from millstream.systems.sqlite.settings import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.lake.delta import FencedTable
    from millstream.serve.store import Store


class Target(Protocol):
    """Something that drivers write numbered batches of one row to, and that can be read."""

    def open(self, epoch: int) -> Callable[[int, str], None]:
        """Have a driver take it; give what writes a batch of the driver's."""
        ...

    def rows(self) -> list[tuple[int, str]]:
        """Give all rows: batch, and the driver that wrote it."""
        ...


class HomeTable:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, epoch: int) -> Callable[[int, str], None]:
        taken: FencedTable = table_in(self._folder / "t", epoch)

        def write(batch: int, driver: str) -> None:
            taken.append(files(self._folder / driver, [(driver, batch)]), Facts("q", batch=batch))

        return write

    def rows(self) -> list[tuple[int, str]]:
        found = rows_of(self._folder / "t") if (self._folder / "t").exists() else []
        return sorted((batch, str(driver)) for driver, batch in found)


class OfStore:
    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self.open(0)

    def open(self, epoch: int) -> Callable[[int, str], None]:
        taken: Store = opened(self._sink, epoch, mode="append")
        return lambda batch, driver: void(put(taken, batch, table({"id": batch, "text": driver})))

    def rows(self) -> list[tuple[int, str]]:
        return sorted((row["id"], row["text"]) for row in rows_in(self._sink))


def void(_: object) -> None:
    """Leave out what is not asked for."""


TARGETS: dict[str, Callable[[Path], Target]] = {
    "table of the home": HomeTable,
    "Delta": lambda folder: OfStore(DeltaPath(str(folder / "d"))),
    "files": lambda folder: OfStore(FileSink(str(folder / "f"), "json")),
    "SQLite": lambda folder: OfStore(SQLite(str(folder / "s.db"), table="items")),
}
STEPS = st.one_of(
    st.just("start"),
    st.tuples(st.just("next"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("replay"), st.integers(0, 3)),
)


@pytest.mark.parametrize("kind", TARGETS)
@given(steps=st.lists(STEPS, min_size=4, max_size=14))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_each_batch_is_written_once_by_the_last_driver_that_came(
    kind: str, steps: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[kind](Path(folder))
        drivers: list[Callable[[int, str], None]] = []
        expected, committed = list[tuple[int, str]](), -1
        for step in ["start", *steps]:
            if step == "start":
                drivers.append(target.open(len(drivers) + 1))
                continue
            _, back, *is_answered = step
            who = max(len(drivers) - 1 - back, 0)
            # Whoever replays has not heard that its batch was committed.
            batch = max(committed + len(is_answered), 0)
            if who < len(drivers) - 1:
                with pytest.raises(OvertakenError):
                    drivers[who](batch, f"d{who}")
                continue
            drivers[who](batch, f"d{who}")
            if batch == len(expected):
                expected.append((batch, f"d{who}"))
            if any(is_answered):
                committed = batch

        assert target.rows() == expected
