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
from millstream.model.data_type import quoted_name
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
    """As far as in what it is made from: the delay of the source applies."""
    BY_FRONTIER = 1
    """Not behind the frontier of the table; no delay applies to all rows."""
    UNKNOWN = 2
    """Not known. Queries that read it assume the delay of the source, and check it."""


class Orders:
    """The order of every table that a run opens, or has opened before."""

    def __init__(self, graph: Graph, home: Home) -> None:
        self.graph, self.home = graph, home
        self._found: dict[str, Order] = {}

    def note(self, name: str, frame: DataFrame, holds: Sequence[Hold]) -> None:
        """Record how a table is made; `holds` is how long its operators keep rows."""
        operators = held_back_by(frame)
        is_known = len(holds) == len(operators) and all(hold.keeps_times for hold in holds)
        held_back = Order.BY_FRONTIER if is_known else Order.UNKNOWN
        self._found[name] = held_back if operators else Order.AS_READ

    def of(self, name: str) -> Order:
        """Return the order of the rows of a source or table."""
        if self.graph.datasets[name].kind == "source":
            return Order.AS_READ
        found = self._found[name] if name in self._found else self._stored(name)
        return found or max(map(self.of, stored_inputs(self.graph, name)), default=found)

    def event_time(self, name: str) -> EventTime | None:
        """Return the event-time column for readers, and the delay of Spark's watermark."""
        known = event_time_of(self.graph, name)
        if known is None or self.of(name) is not Order.BY_FRONTIER:
            return known
        return replace(known, delay=_BY_FRONTIER)

    def event_times(self, names: Iterable[str]) -> dict[str, EventTime]:
        """Return the event times of the datasets that have one."""
        return {name: known for name in names if (known := self.event_time(name))}

    def delay_us(self, name: str) -> int | None:
        """Return by how many microseconds rows may be late; None if only the frontier bounds it."""
        known = self.event_time(name)
        if known is None or known.delay is _BY_FRONTIER:
            return None
        return known.delay // timedelta(microseconds=1)

    def _stored(self, name: str) -> Order:
        """Return the order of a table that this run does not write."""
        path = self.home.table(name)
        facts = facts_of(path) if is_table(path) else None
        if facts is None or facts.delay is not None or facts.frontier is None:
            return Order.UNKNOWN
        return Order.BY_FRONTIER if facts.event_time else Order.UNKNOWN

    def dropped_rows_check(
        self, dataset: Table | Serve, frame: DataFrame
    ) -> Callable[[int], None] | None:
        """Return a function that raises if Spark drops rows because of their order; None if it may.

        Landing decides what is late. After it, Spark drops a row only if a table in between
        writes rows in another order, or if the query declares a watermark of its own.
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
    """Declare the event time of rows to Spark, if they still have the column."""
    if event_time is None or kept_time(event_time, rows) is None:
        return rows
    column = quoted_name(event_time.column)
    return rows.withWatermark(column, to_spark(spark_delay(event_time)))


def kept_time(event_time: EventTime | None, rows: DataFrame) -> str | None:
    """Return the event-time column of rows, if they still have it."""
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    is_kept = event_time and isinstance(kinds.get(event_time.column), TimestampType)
    return event_time.column if event_time and is_kept else None


def has_no_other_watermark(frame: DataFrame, times: Iterable[EventTime]) -> bool:
    """Return whether a query has no watermarks but those of the datasets it reads."""
    return watermarks_of(frame) <= {(time.column, spark_delay(time)) for time in times}


def spark_delay(event_time: EventTime) -> timedelta:
    """Return the delay of Spark's watermark.

    Spark drops a row exactly at the watermark in some operators; landing accepts it.
    """
    return event_time.delay + timedelta(milliseconds=1)
