"""Idle sources: the clock advances their watermark, and that of the queries that read them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from millstream.build.event_time import Order, has_no_other_watermark
from millstream.check.tables import stored_inputs
from millstream.checkpoint import CheckpointLog
from millstream.errors import CheckpointDamagedError
from millstream.lake.frontier import NOTHING_YET, watermark_ms
from millstream.lake.log import facts_of
from millstream.landing.idle import Idle
from millstream.model.connector import Following
from millstream.model.duration import UNIX_EPOCH
from millstream.run.query import StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from millstream.build.event_time import Orders
    from millstream.lake.home import Home
    from millstream.landing.landing_sink import LandingSink
    from millstream.model.dataset import EventTime, Source
    from millstream.model.graph import Graph
    from millstream.model.trigger import Trigger
    from millstream.run.supervise import Supervised

_US = timedelta(microseconds=1)


def machine_clock() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


def advances_without_rows(graph: Graph, name: str) -> bool:
    """Return whether the frontier of a dataset can advance while no rows arrive.

    A clock advances it: that of an idle source, in this app or in an app whose table it follows.
    """
    sources = [source for source in graph.sources if source.name in graph.upstream(name)]
    return any(s.idle is not None or isinstance(s.connector, Following) for s in sources)


class IdleSources:
    """The landed sources of a run whose watermark the clock advances while no rows arrive."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._sources: dict[str, _IdleSource] = {}

    def add(self, sink: LandingSink, source: Source, log: CheckpointLog) -> None:
        """Add a source, if it declares when it is idle."""
        if idle := Idle.of(source):
            self._sources[source.name] = _IdleSource(idle, sink, log, self._now)

    def look_after(self, supervised: Supervised) -> None:
        """Advance the watermark of a source that was polled and had no rows."""
        source, running = self._sources.get(supervised.query.name), supervised.running
        if source and isinstance(running, StreamRun) and source.is_due and running.is_waiting:
            # If a full disk prevents it, it is tried again when it is due next.
            with suppress(OSError, DeltaError):
                source.advance(running, supervised.trigger)

    def settle(self, supervised: Supervised) -> None:
        """Advance the watermark of a source that has nothing left to read."""
        source, running = self._sources.get(supervised.query.name), supervised.running
        if source and isinstance(running, StreamRun) and source.is_due:
            source.advance(running)


class _IdleSource:
    """A source that may be idle, and when its watermark is due to advance."""

    def __init__(
        self, idle: Idle, sink: LandingSink, log: CheckpointLog, now: Callable[[], datetime]
    ) -> None:
        self._idle, self._sink, self._log, self._now = idle, sink, log, now
        self._opened_at = self._due_at = self._time
        self._last_rows = -1, self._opened_at

    @property
    def is_due(self) -> bool:
        return self._time >= self._due_at

    def advance(self, running: StreamRun, trigger: Trigger | None = None) -> None:
        self._due_at, polled_at = self._time + self._idle.step, _last_poll(self._time, trigger)
        running.between_batches(lambda: self._sink.pass_time(self._idle_since, polled_at))

    @property
    def _time(self) -> int:
        return (self._now() - UNIX_EPOCH) // _US

    @property
    def _idle_since(self) -> int:
        """When the last rows arrived; for a source that never had any, when this run began."""
        changed = self._sink.facts.changed
        if changed != self._last_rows[0]:
            try:
                self._last_rows = changed, self._log.planned_at_ms(changed) * 1000
            except CheckpointDamagedError:
                # Spark forgets old batches.
                self._last_rows = changed, self._opened_at
        return self._last_rows[1]


class InputWatermark:
    """The watermark that the frontiers of its inputs allow a query, rows or no rows."""

    def __init__(self, times: Mapping[str, EventTime], home: Home, log: CheckpointLog) -> None:
        self._times, self._home, self._log = times, home, log

    @staticmethod
    def of(name: str, frame: DataFrame, orders: Orders) -> Callable[[int], int | None]:
        """Make it for a query whose inputs advance without rows, or hold rows back.

        For other queries, and for one that declares a watermark of its own, the rows alone move
        the watermark, and the function returns None.
        """
        graph, home = orders.graph, orders.home
        inputs = stored_inputs(graph, name)
        if advances_without_rows(graph, name) or Order.BY_FRONTIER in map(orders.of, inputs):
            times = orders.event_times(inputs)
            datasets = [graph.datasets[n] for n in inputs]
            is_live = any(dataset.live for dataset in datasets)
            if times and not is_live and has_no_other_watermark(frame, times.values()):
                return InputWatermark(times, home, CheckpointLog(home.checkpoint(name)))
        return lambda _: None

    def __call__(self, batch: int) -> int | None:
        """Return the watermark after a batch, in milliseconds; None if rows alone move it."""
        versions = self._log.offsets(batch).versions
        frontiers = [self._frontier(n, versions.get(i, -1)) for n, i in self._ids.items()]
        known = [frontier for frontier in frontiers if frontier is not None]
        if not known or len(known) < len(frontiers) or min(known) <= 0:
            return None
        return watermark_ms(min(known))

    def _frontier(self, name: str, version: int) -> int | None:
        """Return the event time before which no row can still arrive; None if it is not known."""
        facts = facts_of(self._home.table(name), version=version)
        if facts.frontier == NOTHING_YET or facts.event_time != self._times[name].column:
            return None
        return facts.frontier

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        tables = {name: DeltaTable(str(self._home.table(name))) for name in self._times}
        return {name: str(table.metadata().id) for name, table in tables.items()}


def _last_poll(now: int, trigger: Trigger | None) -> int:
    """Return when a source was polled last; without a trigger, now."""
    if trigger is None or trigger.interval is None:
        return now
    every = trigger.interval // _US
    return now // every * every
