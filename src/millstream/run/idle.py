"""Time goes on for a source without rows, and for whoever reads it."""

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
from millstream.model.dataset import Following, Source
from millstream.run.query import StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from millstream.build.event_time import Orders
    from millstream.lake.home import Home
    from millstream.landing.land import LandingSink
    from millstream.model.dataset import EventTime
    from millstream.model.graph import Graph
    from millstream.model.trigger import Trigger
    from millstream.run.supervise import Supervised

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)


def machine_clock() -> datetime:
    """Say what time it is."""
    return datetime.now(UTC)


def may_go_on(graph: Graph, name: str) -> bool:
    """Tell whether what a dataset is made from may be complete to later moments without rows.

    It is by a clock: that of an idle source, here or in another app whose table is followed.
    """
    sources = [source for source in graph.sources if source.name in graph.upstream(name)]
    return any(s.idle is not None or isinstance(s.connector, Following) for s in sources)


class IdleSources:
    """The landed sources of a run whose watermark the clock moves while no rows come."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._quiet: dict[str, _Quiet] = {}

    def add(self, sink: LandingSink, source: Source, log: CheckpointLog) -> None:
        """Let time pass for a source too, if it says when it is idle."""
        if idle := Idle.of(source):
            self._quiet[source.name] = _Quiet(idle, sink, log, self._now)

    def look_after(self, supervised: Supervised) -> None:
        """Let time pass, if it is a source that was looked at and had nothing."""
        quiet, running = self._quiet.get(supervised.query.name), supervised.running
        if quiet and isinstance(running, StreamRun) and quiet.is_due and running.is_waiting:
            # What a full disk keeps from being told now is told when it is due again.
            with suppress(OSError, DeltaError):
                quiet.pass_time(running, supervised.trigger)

    def settle(self, supervised: Supervised) -> None:
        """Let time pass, if it is a source of which nothing is left to read."""
        quiet, running = self._quiet.get(supervised.query.name), supervised.running
        if quiet and isinstance(running, StreamRun) and quiet.is_due:
            quiet.pass_time(running)


class _Quiet:
    """One such source."""

    def __init__(
        self, idle: Idle, sink: LandingSink, log: CheckpointLog, now: Callable[[], datetime]
    ) -> None:
        self._idle, self._sink, self._log, self._now = idle, sink, log, now
        self._opened_at = self._due_at = self._time
        self._heard = -1, self._opened_at

    @property
    def is_due(self) -> bool:
        return self._time >= self._due_at

    def pass_time(self, running: StreamRun, trigger: Trigger | None = None) -> None:
        self._due_at, looked_at = self._time + self._idle.step, _last_look(self._time, trigger)
        running.between_batches(lambda: self._sink.pass_time(self._quiet_since, looked_at))

    @property
    def _time(self) -> int:
        return (self._now() - _EPOCH) // _US

    @property
    def _quiet_since(self) -> int:
        """When the last rows came; of a source that never had any, when this run began."""
        changed = self._sink.facts.changed
        if changed != self._heard[0]:
            try:
                self._heard = changed, self._log.planned_at_ms(changed) * 1000
            except CheckpointDamagedError:
                # Spark forgets old batches.
                self._heard = changed, self._opened_at
        return self._heard[1]


class InputWatermark:
    """The watermark that the frontiers of its inputs allow a query, rows or no rows."""

    def __init__(self, times: Mapping[str, EventTime], home: Home, log: CheckpointLog) -> None:
        self._times, self._home, self._log = times, home, log

    @staticmethod
    def of(name: str, frame: DataFrame, orders: Orders) -> Callable[[int], int | None]:
        """Make it for who reads a source that goes on without rows, or what is held back.

        For others rows alone tell; so they do where the query has a watermark of its own, whose
        rows landing does not know.
        """
        graph, home = orders.graph, orders.home
        inputs = stored_inputs(graph, name)
        if may_go_on(graph, name) or Order.TOLD in map(orders.of, inputs):
            times = orders.event_times(inputs)
            datasets = [graph.datasets[n] for n in inputs]
            is_live = any(isinstance(dataset, Source) and dataset.live for dataset in datasets)
            if times and not is_live and has_no_other_watermark(frame, times.values()):
                return InputWatermark(times, home, CheckpointLog(home.checkpoint(name)))
        return lambda _: None

    def __call__(self, batch: int) -> int | None:
        """Say where the watermark is after a batch, in milliseconds; None if rows alone tell."""
        versions = self._log.offsets(batch).versions
        frontiers = [self._frontier(n, versions.get(i, -1)) for n, i in self._ids.items()]
        known = [frontier for frontier in frontiers if frontier is not None]
        if not known or len(known) < len(frontiers) or min(known) <= 0:
            return None
        return watermark_ms(min(known))

    def _frontier(self, name: str, version: int) -> int | None:
        """Say which event time no row to come is before; None if that is not known."""
        told = facts_of(self._home.table(name), version=version)
        if told.frontier == NOTHING_YET or told.event_time != self._times[name].column:
            return None
        return told.frontier

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        tables = {name: DeltaTable(str(self._home.table(name))) for name in self._times}
        return {name: str(table.metadata().id) for name, table in tables.items()}


def _last_look(now: int, trigger: Trigger | None) -> int:
    """Say when a source was looked at last; without a trigger, now."""
    if trigger is None or trigger.interval is None:
        return now
    every = trigger.interval // _US
    return now // every * every
