"""The event time of what a query reads: its column, the order of its rows, how long Spark waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from enum import IntEnum
from typing import TYPE_CHECKING

from pyspark.sql.types import TimestampType

from millstream.check.tables import stored_inputs
from millstream.errors import fault
from millstream.lake.log import facts_of, is_table
from millstream.model.dataset import Source
from millstream.model.duration import to_spark
from millstream.plan.queries import event_time_of
from millstream.spark.nodes import held_back_by, watermarks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame

    from millstream.lake.home import Home
    from millstream.model.dataset import EventTime, Serve, Table
    from millstream.model.graph import Graph
    from millstream.operators.build_context import Hold

_BY_FRONTIER = timedelta(days=365_000)
"""A delay that no event time moves the watermark of: the frontier alone does."""


class Order(IntEnum):
    """How far behind the greatest event time of a table a row of it may still come."""

    AS_READ = 0
    """As far as in what it is made from: the delay of the source holds."""
    TOLD = 1
    """As far as the frontier of the table tells; no delay holds for all rows."""
    UNKNOWN = 2
    """Not known. Readers take the delay of the source to hold, and are held to it."""


class Orders:
    """The order of every table that a run opens, or has opened before."""

    def __init__(self, graph: Graph, home: Home) -> None:
        self.graph, self.home = graph, home
        self._found: dict[str, Order] = {}

    def note(self, name: str, frame: DataFrame, held: Sequence[Hold]) -> None:
        """Take note of how a table is made; `held` is what its operators tell."""
        operators = held_back_by(frame)
        is_told = len(held) == len(operators) and all(hold.keeps_times for hold in held)
        held_back = Order.TOLD if is_told else Order.UNKNOWN
        self._found[name] = held_back if operators else Order.AS_READ

    def of(self, name: str) -> Order:
        """Say in what order the rows of a source or table come."""
        if isinstance(self.graph.datasets[name], Source):
            return Order.AS_READ
        found = self._found[name] if name in self._found else self._stored(name)
        return found or max(map(self.of, stored_inputs(self.graph, name)), default=found)

    def event_time(self, name: str) -> EventTime | None:
        """Say which column is event time to readers, and how long Spark is to wait behind it."""
        known = event_time_of(self.graph, name)
        if known is None or self.of(name) is not Order.TOLD:
            return known
        return replace(known, delay=_BY_FRONTIER)

    def event_times(self, names: Iterable[str]) -> dict[str, EventTime]:
        """Give the event times of those that have one."""
        told = {name: self.event_time(name) for name in names}
        return {name: event_time for name, event_time in told.items() if event_time}

    def delay_us(self, name: str) -> int | None:
        """Say how far behind rows may come, in microseconds; None if only a frontier tells."""
        known = self.event_time(name)
        if known is None or known.delay is _BY_FRONTIER:
            return None
        return known.delay // timedelta(microseconds=1)

    def _stored(self, name: str) -> Order:
        """Say how a table came that this run does not write."""
        path = self.home.table(name)
        facts = facts_of(path) if is_table(path) else None
        is_told = facts and facts.event_time and facts.frontier is not None and facts.delay is None
        return Order.TOLD if is_told else Order.UNKNOWN

    def hold_to(self, dataset: Table | Serve, frame: DataFrame) -> Callable[[int], None] | None:
        """Make what refuses a batch of which Spark drops rows, where only their order is at fault.

        Landing decides what is late. Spark drops a row behind it if a table between gives rows in
        another order; where a query has a watermark of its own, that is as it was told to.
        """
        times = self.event_times(stored_inputs(self.graph, dataset.name))
        behind = tuple(name for name in times if self.of(name) is not Order.AS_READ)
        if not behind or not has_no_other_watermark(frame, times.values()):
            return None

        def refuse(rows: int) -> None:
            column = times[behind[0]].column
            raise fault(
                "ROWS_BEHIND",
                at=dataset.at,
                reads=behind[0],
                rows=rows,
                column=column,
                dataset=dataset.name,
            )

        return refuse


def watermarked(rows: DataFrame, event_time: EventTime | None) -> DataFrame:
    """Tell Spark the event time of rows, if they still have it."""
    if event_time is None or kept_time(event_time, rows) is None:
        return rows
    return rows.withWatermark(event_time.column, to_spark(spark_delay(event_time)))


def kept_time(event_time: EventTime | None, rows: DataFrame) -> str | None:
    """Name the column that is event time to whoever reads rows, if they still have it."""
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    is_kept = event_time and isinstance(kinds.get(event_time.column), TimestampType)
    return event_time.column if event_time and is_kept else None


def has_no_other_watermark(frame: DataFrame, times: Iterable[EventTime]) -> bool:
    """Tell whether a query has only the watermarks that the datasets it reads were given."""
    return watermarks_of(frame) <= {(time.column, spark_delay(time)) for time in times}


def spark_delay(event_time: EventTime) -> timedelta:
    """Say by how much Spark's watermark is to stay behind.

    Spark drops a row exactly at the watermark in some operators; landing accepts it.
    """
    return event_time.delay + timedelta(milliseconds=1)
