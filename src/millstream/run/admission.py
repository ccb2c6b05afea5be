"""How much each batch of a query reads: bounded, and in whole versions of the tables it reads."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.checkpoint import files_of_batch
from millstream.errors import CheckpointDamagedError
from millstream.lake.backlog import backlog, rows_between
from millstream.model.dataset import BoundedReading
from millstream.run.pace import Pace
from millstream.spark.admission import ALL_FILES, Admitted, as_spark_writes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.checkpoint import CheckpointLog
    from millstream.model.batch import BatchBound
    from millstream.model.dataset import Connector
    from millstream.spark.admission import Limit, Unit

_FIRST: Mapping[Unit, int] = {"rows": 100_000, "bytes": 128 << 20}
"""What a first batch reads for each core, since it is not known how long it takes."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What a batch has read of one source: from where to where, as the offset log says."""

    batch: int
    start: Any
    """None before the first batch, or if it is not known any more."""
    end: Any


class Admission:
    """What the batches of one query may read, set before each of them is planned."""

    def __init__(self, bound: BatchBound, log: CheckpointLog, *, cores: int) -> None:
        self._bound, self._log, self._cores = bound, log, cores
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
        position = self._planned_position(table) if self._is_bounded else None
        files = ALL_FILES if position is None else self._files(table, position, self._first("rows"))
        self._first_limits.add(as_spark_writes("files", files))
        return files

    def after(self, query: StreamingQuery, spark: SparkSession, batch: int, seconds: float) -> None:
        """Set how much the next batch may read; to be called at the end of each batch."""
        if not self._is_bounded:
            return
        admitted, ours = self._bounded_sources(query, spark)
        if not ours:
            return
        ends = _parsed(self._log.offsets(batch).ends)
        starts = self._ends_before(batch) or [None] * len(ends)
        limits: dict[int, Limit] = {}
        for number, unit in ours.items():
            read = _Read(batch, starts[number], ends[number])
            limits[number] = self._limit(admitted, number, unit, read, seconds)
        admitted.set(limits)
        self._last = batch, ends

    @property
    def _is_bounded(self) -> bool:
        return bool(self._bound.target or self._bound.rows)

    def _first(self, unit: Unit) -> int:
        return self._bound.rows or _FIRST[unit] * self._cores

    def _limit(
        self, admitted: Admitted, number: int, unit: Unit, read: _Read, seconds: float
    ) -> Limit:
        if unit == "files":
            table = Path(admitted.table(number))
            start, end = _version(read.start) if read.batch else 0, _version(read.end)
            rows = 0 if start is None or end is None else rows_between(table, start, end)
            most = self._paced(number, "rows", rows, seconds)
            return "files", ALL_FILES if end is None else self._files(table, end, most)
        amount = _records(read) if unit == "rows" else self._bytes(read.batch)
        return unit, self._paced(number, unit, amount, seconds)

    def _paced(self, number: int, unit: Unit, amount: int, seconds: float) -> int:
        """Return how much the next batch may read of a source, after one of this amount."""
        if self._bound.target is None:
            return self._first(unit)
        first = Pace(self._bound.target.total_seconds(), self._first(unit))
        self._paces[number] = self._paces.get(number, first).after(amount, seconds)
        return self._paces[number].amount

    def _files(self, table: Path, version: int, most_rows: int) -> int:
        return backlog(table, version, most_rows=most_rows).files or ALL_FILES

    def _bytes(self, batch: int) -> int:
        """Sum up the files that a batch has read, as far as they are still there."""
        size = 0
        for path in files_of_batch(self._log, batch):
            with suppress(OSError):
                size += os.stat(path).st_size
        return size

    def _planned_position(self, table: Path) -> int | None:
        """Return the version of a table that the query reads next; None within a snapshot."""
        if (planned := self._log.planned) < 0:
            return 0
        name = str(DeltaTable(str(table)).metadata().id)
        ends = _parsed(self._log.offsets(planned).ends)
        found = [_version(end) for end in ends if end and end.get("reservoirId") == name]
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


def _version(offset: Any) -> int | None:
    """Return the version that a Delta offset is at the beginning of; None within one."""
    match offset:
        case {"reservoirVersion": int(version), "index": -1, **rest}:
            return None if rest.get("isStartingVersion") else version
    return None


def _records(read: _Read) -> int:
    """Count the records of a topic that a batch has read."""
    if read.start is None:
        return 0
    return sum(
        end - read.start.get(topic, {}).get(partition, 0)
        for topic, partitions in read.end.items()
        for partition, end in partitions.items()
    )
