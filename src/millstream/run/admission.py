"""How much each batch of a query reads: bounded, and in whole versions of the tables it reads."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.checkpoint import files_of_batch
from millstream.errors import CheckpointDamagedError
from millstream.lake.backlog import backlog, rows_between, snapshot_backlog, snapshot_files
from millstream.lake.log import commit_path
from millstream.landing.inbox import Room
from millstream.model.connector import BoundedReading
from millstream.run.batch_size import Pace
from millstream.spark.admission import ALL_FILES, Admitted, as_spark_writes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.checkpoint import CheckpointLog
    from millstream.model.batch import BatchBound
    from millstream.model.connector import Connector
    from millstream.run.batch_size import BatchCost
    from millstream.spark.admission import Limit, Unit

_FIRST: Mapping[Unit, int] = {"rows": 100_000, "bytes": 128 << 20}
"""What a first batch reads for each core, since it is not known how long it takes."""

_LEAST_RECEIVED = 1_000
"""Records that may wait in any case: fewer would cost more batches than they spare time."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What a batch has read of one source: from where to where, as the offset log says."""

    batch: int
    start: Any
    """None before the first batch, or if it is not known any more."""
    end: Any


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a reader of a Delta table is: at the beginning of a version, or within a snapshot."""

    version: int
    file: int | None = None
    """Of the snapshot of the version, the next to be read."""


class Admission:
    """What the batches of one query may read, set before each of them is planned."""

    def __init__(
        self,
        bound: BatchBound,
        log: CheckpointLog,
        *,
        cores: int,
        is_received: bool = False,
        taken: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Prepare it.

        Args:
            bound: What a batch may take.
            log: The checkpoint of the query.
            cores: How many tasks run at once.
            is_received: Whether a receiver passes on what it reads: then the bound is that of the
                inbox.
            taken: Returns how many of the rows that it writes its readers take in a batch of
                theirs; None if that is not known.
        """
        self._bound, self._log, self._cores, self._is_received = bound, log, cores, is_received
        self._taken = taken
        self._room = Room() if bound.rows is None else Room(bound.rows)
        self._limits: dict[Path, int] = {}
        """How many rows of each table the next batch may read."""
        self._first_limits: set[str] = set()
        self._paces: dict[int, Pace] = {}
        self._running: tuple[StreamingQuery, Admitted, dict[int, Unit]] | None = None
        self._last: tuple[int, list[Any]] | None = None

    def connector(self, connector: Connector) -> Connector:
        """Bound the first batch of a connector, unless its own options do."""
        if not self._is_bounded or not isinstance(connector, BoundedReading):
            return connector
        first = self._first(connector.bounded_in)
        self._first_limits.add(as_spark_writes(connector.bounded_in, first))
        return connector.bounded(first)

    def files(self, table: Path) -> int:
        """Return how many files of a table the first batch after a start reads.

        They are those of whole versions; what the table gains until then comes after them.
        """
        place = self._planned_place(table) if self._is_bounded else None
        files = ALL_FILES if place is None else self._files(table, place, self._first("rows"))
        self._first_limits.add(as_spark_writes("files", files))
        return files

    def after(
        self, query: StreamingQuery, spark: SparkSession, batch: int, cost: BatchCost
    ) -> None:
        """Set how much the next batch may read; to be called at the end of each batch."""
        if not self._is_bounded:
            return
        if self._is_received:
            self._make_room(cost)
            return
        admitted, ours = self._bounded_sources(query, spark)
        if not ours:
            return
        ends = _parsed(self._log.offsets(batch).ends)
        starts = self._ends_before(batch) or [None] * len(ends)
        limits: dict[int, Limit] = {}
        for number, unit in ours.items():
            read = _Read(batch, starts[number], ends[number])
            limits[number] = self._limit(admitted, number, unit, read, cost)
        admitted.set(limits)
        self._last = batch, ends

    def room(self) -> Room:
        """Return how many received records may wait for the next batch."""
        return self._room

    def takes(self, table: Path) -> int | None:
        """Return how many rows of a table the next batch may read; None if nothing says so."""
        return self._limits.get(table.resolve())

    def _make_room(self, cost: BatchCost) -> None:
        if self._bound.target is not None:
            target_s, most = self._bound.target.total_seconds(), Room().records
            first = Pace(target_s, most, _LEAST_RECEIVED, most)
            self._room = Room(self._paced(0, first, cost.read, cost), cost.seconds)

    @property
    def _is_bounded(self) -> bool:
        return bool(self._bound.target or self._bound.rows)

    def _first(self, unit: Unit) -> int:
        return self._bound.rows or _FIRST[unit] * self._cores

    def _limit(
        self, admitted: Admitted, number: int, unit: Unit, read: _Read, cost: BatchCost
    ) -> Limit:
        if unit == "files":
            table = Path(admitted.table(number))
            end = _place(read.end)
            most = self._next(number, "rows", _rows(table, read, end), cost)
            self._limits[table.resolve()] = most
            return "files", ALL_FILES if end is None else self._files(table, end, most)
        amount = _records(read) if unit == "rows" else self._bytes(read.batch)
        return unit, self._next(number, unit, amount, cost)

    def _next(self, number: int, unit: Unit, amount: int, cost: BatchCost) -> int:
        """Return how much the next batch may read of a source, after one of this amount."""
        if self._bound.target is None:
            return self._first(unit)
        first = Pace(self._bound.target.total_seconds(), self._first(unit))
        return self._paced(number, first, amount, cost)

    def _paced(self, number: int, first: Pace, amount: int, cost: BatchCost) -> int:
        pace = self._paces.get(number, first).after(amount, cost.seconds)
        self._paces[number] = pace
        return pace.for_readers(self._taken(), replace(cost, read=amount))

    def _files(self, table: Path, place: _Place, most_rows: int) -> int:
        begin, files = place.version, 0
        if place.file is not None:
            of = place.version
            files = snapshot_backlog(table, place.file, most_rows=most_rows, version=of).files
            begin += 1
        return files or backlog(table, begin, most_rows=most_rows).files or ALL_FILES

    def _bytes(self, batch: int) -> int:
        """Sum up the files that a batch has read, as far as they are still there."""
        size = 0
        for path in files_of_batch(self._log, batch):
            with suppress(OSError):
                size += os.stat(path).st_size
        return size

    def _planned_place(self, table: Path) -> _Place | None:
        """Return where in a table the query reads next; None if that is not known."""
        if (planned := self._log.planned) < 0:
            newest = DeltaTable(str(table)).version()
            return _Place(0) if commit_path(table, 0).exists() else _Place(newest, 0)
        name = str(DeltaTable(str(table)).metadata().id)
        ends = _parsed(self._log.offsets(planned).ends)
        found = [_place(end) for end in ends if end and end.get("reservoirId") == name]
        return found[0] if len(found) == 1 else None

    def _bounded_sources(
        self, query: StreamingQuery, spark: SparkSession
    ) -> tuple[Admitted, dict[int, Unit]]:
        """Return the sources whose limits are ours to set, and not the user's."""
        if self._running is None or self._running[0] is not query:
            admitted = Admitted(query, spark)
            units = enumerate(admitted.units)
            ours = {
                number: unit
                for number, unit in units
                if unit and admitted.limit(number) in self._first_limits
            }
            self._running = query, admitted, ours
        return self._running[1:]

    def _ends_before(self, batch: int) -> list[Any] | None:
        """Return where the batch before ended; None if there was none, or if it is forgotten."""
        if self._last and self._last[0] == batch - 1:
            return self._last[1]
        with suppress(CheckpointDamagedError):
            return _parsed(self._log.offsets(batch - 1).ends) if batch else None
        return None


def _parsed(ends: tuple[str, ...]) -> list[Any]:
    return [None if end == "-" else json.loads(end) for end in ends]


def _place(offset: Any) -> _Place | None:
    """Return where a Delta offset is; None within a version that is no snapshot."""
    match offset:
        case {"reservoirVersion": int(version), "isStartingVersion": True, "index": int(index)}:
            return _Place(version, index + 1)
        case {"reservoirVersion": int(version), "index": -1}:
            return _Place(version)
    return None


def _rows(table: Path, read: _Read, end: _Place | None) -> int:
    """Count the rows of a table that a batch has read; 0 if that is not known."""
    if end is None:
        return 0
    start = _place(read.start)
    if not read.batch:
        start = _Place(0) if end.file is None else _Place(end.version, 0)
    if start is None:
        return 0
    rows, begin = 0, start.version
    if start.file is not None:
        last = end.file if end.version == start.version else None
        files = snapshot_files(table, start.version)[start.file : last]
        rows, begin = sum(file.rows for file in files), begin + 1
    return rows + rows_between(table, begin, end.version)


def _records(read: _Read) -> int:
    """Count the records of a topic that a batch has read."""
    if read.start is None:
        return 0
    return sum(
        end - read.start.get(topic, {}).get(partition, 0)
        for topic, partitions in read.end.items()
        for partition, end in partitions.items()
    )
