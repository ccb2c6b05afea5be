"""The frontier of a table: up to when its answer is complete, from what its batch has read."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from pyspark.sql.types import TimestampType

from millstream.build.event_time import kept_time
from millstream.check.tables import stored_inputs
from millstream.checkpoint import WAITING
from millstream.lake.frontier import NOTHING_YET, Publication, least
from millstream.lake.log import facts_of
from millstream.model.connector import Following
from millstream.plan.queries import event_time_of
from millstream.spark.nodes import streams_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from millstream.build.event_time import Orders
    from millstream.checkpoint import CheckpointLog
    from millstream.lake.delta import FencedTable
    from millstream.lake.home import Home
    from millstream.model.connector import Followed
    from millstream.model.dataset import Serve, Source, Table
    from millstream.operators.build_context import Hold

_MICROSECOND = timedelta(microseconds=1)

_TAG = "spark.watermarkDelayMs"
"""The metadata by which Spark marks the event-time column."""

_HOLDING = {"stateStoreSave", "sessionWindowStateStoreSaveExec"}
"""Operators that in append mode emit all that the watermark has passed, and no more."""

_PASSING = {"dedupe", "dedupeWithinWatermark"}
"""Operators that keep state and emit rows at once."""


class StreamFrontier:
    """The frontier of a table that a streaming query writes."""

    def __init__(
        self,
        table: Table | Serve,
        frame: DataFrame,
        orders: Orders,
        log: CheckpointLog,
        holds: Sequence[Hold] = (),
    ) -> None:
        self._table, self._orders, self._log, self._holds = table, orders, log, holds
        self._graph, self._home = orders.graph, orders.home
        self._frame = frame
        self._event_time = _tagged(frame)
        self._kept = kept_time(orders.event_time(table.name), frame)

    def __call__(self, batch: int) -> Publication:
        """Return what is known after a batch; the same at every call."""
        operators, offsets = self._log.operators, self._log.offsets(batch)
        passed = offsets.watermark_ms * 1000 or NOTHING_YET
        if others := [name for name in operators if name not in _HOLDING | _PASSING]:
            if len(others) != len(self._holds) or not WAITING.issuperset(others):
                return Publication()
            longest = sum((hold.longest for hold in self._holds), timedelta())
            frontier = passed if passed == NOTHING_YET else passed - longest // _MICROSECOND
            is_kept = all(hold.keeps_times for hold in self._holds)
            return Publication(frontier, self._kept if is_kept else None)
        if self._table.mode in ("append", None) and not _HOLDING.isdisjoint(operators):
            # Rows come as the watermark passes them, so none comes behind another.
            return Publication(passed, self._event_time, 0)
        return self._passing({n: offsets.versions.get(i, -1) for n, i in self._ids.items()})

    def _passing(self, read: Mapping[str, int]) -> Publication:
        """Return what is known of rows that are emitted as soon as they are read."""
        if len(read) < len(self._inputs):
            return Publication()
        frontier = least(frontier_at(self._home, name, read[name]) for name in self._inputs)
        if frontier is None or not all(self._passes_event_time(n, v) for n, v in read.items()):
            return Publication(frontier)
        return Publication(frontier, self._event_time, self._orders.delay_us(self._table.name))

    def _passes_event_time(self, name: str, version: int) -> bool:
        """Return whether an input was written with the event time that Spark assumes."""
        facts = facts_of(self._home.table(name), version=version)
        event_time = event_time_of(self._graph, name)
        return event_time is not None and facts.event_time == event_time.column

    @cached_property
    def _inputs(self) -> tuple[str, ...]:
        names = stored_inputs(self._graph, self._table.name)
        models = {model.name for model in self._graph.models}
        if models.isdisjoint(names):
            return names
        # A model that rows are only scored with is no stream of the query.
        streamed = {Path(path).name for path in streams_of(self._frame) if path}
        return tuple(name for name in names if name not in models - streamed)

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        """The inputs that are stored, each with the id of its table."""
        datasets = [self._graph.datasets[name] for name in self._inputs]
        stored = [d.name for d in datasets if not d.live]
        return {n: str(DeltaTable(str(self._home.table(n))).metadata().id) for n in stored}


def frontier_at(home: Home, name: str, version: int) -> int | None:
    """Return the frontier that a table of a home had at a version."""
    facts = facts_of(home.table(name), version=version)
    return NOTHING_YET if facts.batch < 0 and facts.frontier is None else facts.frontier


def following(
    source: Source, table: FencedTable, log: CheckpointLog
) -> Callable[[int], Followed | None]:
    """Check a source against the table of another app that it follows.

    Returns:
        A function from a batch to the position in that table; to None for other sources.
    """
    connector = source.connector
    if not isinstance(connector, Following):
        return lambda _: None

    def followed(batch: int) -> Followed:
        connector.check_position(table.facts.inputs, source.name, source.connector_at)
        return connector.followed_to(min(log.offsets(batch).versions.values()))

    connector.check_position(table.facts.inputs, source.name, source.connector_at)
    return followed


def _tagged(frame: DataFrame) -> str | None:
    """Return the column that is event time to Spark; None if there is none, or several."""
    fields = (f for f in frame.schema.fields if isinstance(f.dataType, TimestampType))
    tagged = [field.name for field in fields if _TAG in field.metadata]
    return tagged[0] if len(tagged) == 1 else None
