"""A running application: its queries opened in order, supervised, and stopped between batches."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from millstream.build.build import Snapshots, Streams, answer, hold_rules, hold_to_declaration
from millstream.build.failure import explain, is_python_late
from millstream.build.frontier import StreamFrontier, following
from millstream.build.operator import made_by, unfit_operators
from millstream.build.states import hold_to_states
from millstream.checkpoint import CheckpointLog
from millstream.errors import (
    FaultsError,
    NothingLandedError,
    OvertakenError,
    QueryStoppedError,
)
from millstream.lake.delta import facts_of
from millstream.lake.enforce import Shape, open_table
from millstream.lake.table import TableSink, open_table_sink
from millstream.lake.trouble import Trouble, record_troubles
from millstream.landing.inbox import Inbox
from millstream.landing.land import Landing, LandingSink
from millstream.model.dataset import Receiving, Serve, Source, SparkSink
from millstream.model.trigger import Trigger
from millstream.observe import Event
from millstream.operators.state.aside import setting_aside, stopping
from millstream.operators.state.hold import noting_holds
from millstream.run.alerts import Alerts, hold_to_alert
from millstream.run.files import ReadFiles
from millstream.run.idle import IdleSources, InputWatermark, machine_clock
from millstream.run.query import StreamRun
from millstream.run.reception import Reception
from millstream.run.recompute import RecomputeRun
from millstream.run.references import Renewal, is_outdated
from millstream.run.rehearse import hold_to_mode
from millstream.run.serve import ServeRun, hold_to_sinks
from millstream.run.slots import refuse_if_tasks_would_wait
from millstream.run.supervise import DEFAULT, Restart, Supervised
from millstream.serve.changes import ChangeLog, Changes
from millstream.serve.stores import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.errors import MillstreamError
    from millstream.lake.lease import Lease
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph
    from millstream.plan import Query
    from millstream.run.query import Launch

_LOOK_EVERY_S = 0.02
_TRIES = 4
"""How often Python may be late in a script, on a machine that has much else to do."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run is to be carried out."""

    trigger: Trigger | None = None
    """Overrides what the datasets say."""
    restart: Restart = DEFAULT
    fail_fast: bool = False
    """Stop everything at the first query that stops for good."""
    launch: Launch = DataStreamWriter.start
    """How a query is started: by the clock of the machine, unless a test brings its own."""
    now: Callable[[], datetime] = machine_clock
    """That clock."""


class Runner:
    """All queries of a run."""

    def __init__(
        self,
        graph: Graph,
        queries: Sequence[Query],
        spark: SparkSession,
        lease: Lease,
        manner: Manner,
        tell: Callable[[Event], None],
    ) -> None:
        self._graph, self._plan, self._spark, self._lease = graph, queries, spark, lease
        self._home, self._manner, self._tell = lease.home, manner, tell
        self._streams = Streams(graph, spark, lease.home)
        self._files = ReadFiles(queries, lease.home, tell)
        self._sinks: dict[str, LandingSink] = {}
        self._idle = IdleSources(manner.now)
        self._receptions: list[Reception] = []
        self._served: list[Served] = []
        self._alerts = Alerts(graph, lease, tell)
        self._troubles: dict[str, Trouble] | None = None
        self.queries: list[Supervised] = []

    def open(self) -> None:
        """Reach the sources, hold every answer to its table, and shut earlier drivers out.

        Raises:
            MillstreamError: Something does not fit; nothing was started.
        """
        for query in self._plan:
            for source in self._read_directly(query):
                source.connector.reach(self._spark, source.name, source.connector_at)
            for sink in query.dataset.to if isinstance(query.dataset, Serve) else ():
                sink.reach_sink(self._spark, query.name, query.dataset.at)
            running = self._open(query)
            self.queries.append(Supervised(query, running, self._trigger(query)))
        refuse_if_tasks_would_wait(self.queries, self._read_directly, self._spark)
        self._alerts.open(self._plan)

    def start(self) -> None:
        """Start the queries that have something to read; `watch` starts the others in time."""
        for supervised in self.queries:
            self._look_after(supervised)
            self._receive(supervised.query)
        self._alerts.start()

    def watch(self) -> None:
        """Look after the queries once: restart, give up, or leave alone.

        Raises:
            OvertakenError: Another driver has taken over the home.
        """
        self._lease.hold()
        for supervised in self.queries:
            self._look_after(supervised)
            self._idle.look_after(supervised)
        self._record_troubles()
        self._files.look()

    def run_once(self, keep_on: Callable[[], bool]) -> None:
        """Run every query until nothing is left for it, each after those it reads from."""
        self._alerts.start()
        for supervised in self.queries:
            if supervised.is_over or self._is_cut_short or not keep_on():
                continue
            if not self._has_input(supervised.query):
                supervised.state = "finished"
                continue
            self._start(supervised)
            while not supervised.is_over and keep_on():
                time.sleep(_LOOK_EVERY_S)
                self._lease.hold()
                self._look_after(supervised)
                self._record_troubles()
            if supervised.state == "finished":
                self._idle.settle(supervised)
        self._alerts.finish(keep_on)
        self._files.look(now=True)

    def drain(self, due: Callable[[Supervised], bool] = lambda _: True) -> None:
        """Have every query that is due take in what is there, each after those it reads from.

        Raises:
            BaseException: What a query died of.
        """
        for supervised in self.queries:
            # Before any of them gives it rows, which it would take in at once.
            if is_outdated(supervised.running, now=True):
                supervised.running.stop()
        for supervised in self.queries:
            if not self._has_input(supervised.query) or not due(supervised):
                continue
            _drain(supervised)
            self._idle.settle(supervised)
        self._alerts.drain()

    def stop(self) -> None:
        """Let every running batch finish, then stop."""
        for reception in self._receptions:
            reception.close()
        for supervised in self.queries:
            supervised.running.ask_to_stop()
        for supervised in self.queries:
            supervised.running.stop()
            if supervised.error is not None and supervised.trouble == "restarting":
                self._give_up(supervised, supervised.error)
            if not supervised.is_over:
                supervised.state = "stopped"
        self._record_troubles()
        for served in self._served:
            served.close()
        self._alerts.close()
        self._files.look(now=True)

    def raise_if_stopped_for_good(self) -> None:
        """Raise what stopped queries died of.

        Raises:
            MillstreamError: The only fault there is.
            QueryStoppedError: There are several.
        """
        failed = [s for s in self.queries if s.state == "failed"]
        stale = [s.query.name for s in self.queries if s.is_stale]
        if len(failed) == 1 and failed[0].error is not None and not stale:
            raise failed[0].error
        if failed:
            names = [supervised.query.name for supervised in failed]
            raise QueryStoppedError(names, stale=stale) from failed[0].error

    @property
    def is_over(self) -> bool:
        """Whether no query will do anything more, or the first failure is to stop all."""
        return self._is_cut_short or all(s.is_over or s.is_stale for s in self.queries)

    @property
    def _is_cut_short(self) -> bool:
        return self._manner.fail_fast and any(s.state == "failed" for s in self.queries)

    def _open(self, query: Query) -> StreamRun | RecomputeRun | ServeRun:
        if isinstance(query.dataset, Source):
            return self._open_landing(query.dataset)
        if isinstance(query.dataset, Serve):
            return self._open_serve(query, query.dataset)
        return self._open_table(query, query.dataset)

    def _read_directly(self, query: Query) -> tuple[Source, ...]:
        if isinstance(query.dataset, Source):
            return (query.dataset,)
        inputs = [self._graph.datasets[name] for name in query.after]
        return tuple(i for i in inputs if isinstance(i, Source) and i.live)

    def _refuse_if_nothing_landed(self, query: Query) -> None:
        live = {source.name for source in self._read_directly(query)}
        for name in query.after:
            if name not in live and name not in self._home.tables:
                raise NothingLandedError(query.name, reads=name)

    def _open_landing(self, source: Source) -> StreamRun:
        landing = Landing.of(source)
        shape = Shape(
            source.name,
            landing.table_schema,
            source.at,
            partition_by=LandingSink.partition_by,
            evolve=source.evolve,
        )
        table = open_table(self._home.table(source.name), shape, epoch=self._lease.epoch)
        if source.expect.rules:
            schema = StructType.fromJson(json.loads(table.schema))
            hold_rules(source, self._spark.createDataFrame([], schema))
        log = CheckpointLog(self._home.checkpoint(source.name))
        followed = following(source, table, log)
        staging = self._home.staging(source.name)
        sink = LandingSink(landing, table, staging, log.planned_at_ms, followed)
        self._sinks[source.name] = sink
        self._idle.add(sink, source, log)
        return self._stream(source, self._streams.raw(source), sink, "append")

    def _open_table(self, query: Query, table: Table) -> StreamRun | RecomputeRun:
        self._refuse_if_nothing_landed(query)
        read = self._streams
        if query.kind == "recompute":
            read = Snapshots(self._graph, self._spark, self._home)  # type: ignore[assignment]
        aside, build = self._home.aside(table.name), partial(answer, self._graph, table.name, read)
        with noting_holds() as held, setting_aside(aside) as functions:
            frame, renewal = Renewal.of(
                query, self._home, self._spark, build, partial(setting_aside, aside), self._tell
            )
        hold_to_declaration(table, frame)
        hold_to_alert(self._graph, table, frame)
        if query.kind == "stream":
            hold_to_mode(table, frame, table.mode)
            hold_to_states(functions.states, table, self._home)
        epoch, may_raise = self._lease.epoch, functions.calls_functions
        sink = open_table_sink(table, frame, self._home, epoch=epoch, may_raise=may_raise)
        if query.kind == "recompute":
            return RecomputeRun(query, self._graph, self._spark, self._home, sink)
        log = CheckpointLog(self._home.checkpoint(table.name))
        self._streams.orders.note(table.name, frame, held)
        sink.published = StreamFrontier(table, frame, self._streams.orders, log, held)
        return self._stream(table, frame, sink, table.mode).renewed_by(renewal)

    def _open_changes(self, query: Query, serve: Serve) -> RecomputeRun:
        frame = answer(self._graph, serve.name, Snapshots(self._graph, self._spark, self._home))
        hold_to_sinks(serve, frame)
        log = ChangeLog.begin(self._home, serve.name)
        changes = Changes(self._serve_to(serve, frame, log), log)
        return RecomputeRun(query, self._graph, self._spark, self._home, changes)

    def _serve_to(self, serve: Serve, frame: DataFrame, log: CheckpointLog | ChangeLog) -> Served:
        served = Served(
            serve, self._graph.app, frame, log, self._lease, lambda n: self._differs(serve.name, n)
        )
        self._served.append(served)
        served.open()
        return served

    def _open_serve(self, query: Query, serve: Serve) -> ServeRun | StreamRun | RecomputeRun:
        self._refuse_if_nothing_landed(query)
        serve = replace(serve, to=self._graph.sinks_of(serve))
        if query.kind == "recompute":
            return self._open_changes(query, serve)
        trigger = self._trigger(query)
        build = partial(answer, self._graph, serve.name, self._streams.triggered(trigger))
        with made_by(self._graph) as made, noting_holds() as held, stopping() as functions:
            frame, renewal = Renewal.of(query, self._home, self._spark, build, stopping, self._tell)
        hold_to_sinks(serve, frame)
        hold_to_states(functions.states, serve, self._home)
        said = self._graph.trigger_of(serve)
        FaultsError.raise_for(unfit_operators(serve, trigger, said, frame, made))
        hold_to_mode(serve, frame, serve.mode_in(trigger))
        log = CheckpointLog(self._home.checkpoint(serve.name))
        if len(serve.to) == 1 and isinstance(serve.to[0], SparkSink):
            return ServeRun(serve, serve.to[0], frame, log, self._manner.launch)
        served = self._serve_to(serve, frame, log)
        served.published = StreamFrontier(serve, frame, self._streams.orders, log, held)
        running = self._stream(serve, frame, served, serve.mode or "append")
        return running.renewed_by(renewal)

    def _differs(self, name: str, batch: int) -> None:
        told = f"batch {batch} gave other rows when it was retried; the first ones stand"
        self._tell(Event("differs", name, told))

    def _stream(
        self,
        dataset: Source | Table | Serve,
        frame: DataFrame,
        sink: LandingSink | TableSink | Served,
        mode: str,
    ) -> StreamRun:
        name, orders = dataset.name, self._streams.orders
        log = CheckpointLog(self._home.checkpoint(name))
        running = StreamRun(
            frame,
            sink,
            output_mode=mode,
            log=log,
            on_difference=lambda batch: self._differs(name, batch),
            launch=self._manner.launch,
        )
        if not isinstance(dataset, Source):
            running.bound = InputWatermark.of(name, frame, orders)
            running.on_dropped = orders.hold_to(dataset, frame)
        return running

    def _trigger(self, query: Query) -> Trigger:
        if self._manner.trigger is not None:
            return self._manner.trigger
        return Trigger.parse(self._graph.trigger_of(query.dataset))

    def _start(self, supervised: Supervised) -> None:
        try:
            supervised.running.start(supervised.trigger)
        except Exception as error:
            self._failed(supervised, error)
        else:
            supervised.state = "running"
            self._tell(Event("started", supervised.query.name))

    def _receive(self, query: Query) -> None:
        source = query.dataset
        if isinstance(source, Source) and isinstance(source.connector, Receiving):
            place, sink = self._home.connector(source.name), self._sinks[source.name]
            inbox = Inbox(place, epoch=self._lease.epoch, landed=lambda: sink.greatest_origin)
            self._receptions.append(Reception(source, inbox, self._manner.restart, self._tell))

    def _look_after(self, supervised: Supervised) -> None:
        if supervised.state == "waiting" and self._has_input(supervised.query):
            self._start(supervised)
        if supervised.state == "restarting" and time.monotonic() >= supervised.retry_at:
            self._start(supervised)
        if supervised.state == "running" and is_outdated(supervised.running):
            supervised.running.stop()
            self._tell(Event("renewed", supervised.query.name))
            self._start(supervised)
        if supervised.state != "running" or supervised.running.is_active:
            return
        failure = supervised.running.failure
        if failure is not None:
            self._failed(supervised, failure)
        elif supervised.finish() or supervised.error is None:
            self._tell(Event("finished", supervised.query.name))
        else:
            self._give_up(supervised, supervised.error)

    def _has_input(self, query: Query) -> bool:
        """Whether anything it reads has rows; to start before costs time and gives nothing."""
        running = {s.query.name: s.running for s in self.queries}
        stored = [name for name in query.after if name in self._home.tables]
        return (
            len(stored) < len(query.after)
            or not query.after
            or any(
                (running[n].facts if n in running else facts_of(self._home.table(n))).changed >= 0
                for n in stored
            )
        )

    def _failed(self, supervised: Supervised, failure: BaseException) -> None:
        name = supervised.query.name
        error = explain(failure, query=name, at=supervised.query.dataset.at, home=self._home)
        if isinstance(error, OvertakenError):
            raise error
        if supervised.fail(error, self._manner.restart):
            pause = max(supervised.retry_at - time.monotonic(), 0)
            self._tell(Event("restarting", name, f"again in {pause:.0f} s", error))
            return
        self._give_up(supervised, error)

    def _give_up(self, supervised: Supervised, error: MillstreamError) -> None:
        name, supervised.state = supervised.query.name, "failed"
        self._tell(Event("failed", name, error=error))
        for other in self.queries:
            if other.query.name in self._graph.downstream(name) and not other.is_stale:
                other.is_stale = True
                self._tell(Event("stale", other.query.name, f"because {name!r} stopped"))

    def _record_troubles(self) -> None:
        """Keep in the home which queries are in trouble, for every later look at it."""
        found = {s.query.name: trouble for s in self.queries if (trouble := _trouble_of(s))}
        if found != self._troubles:
            # On a full disk it is tried again at the next look; what failed is reported either way.
            with suppress(OSError):
                record_troubles(self._home, [s.query.name for s in self.queries], found)
                self._troubles = found


def _trouble_of(supervised: Supervised) -> Trouble | None:
    if (state := supervised.trouble) is None:
        return None
    error = supervised.error
    if error is None:
        fix = "`millstream status` shows what failed; it goes on from there in the next run"
        return Trouble(state, "QUERY_STOPPED", "a dataset that it reads has failed", fix)
    file, line = (error.at.file, error.at.line) if error.at else (None, None)
    return Trouble(state, error.code, error.what, error.fix, file, line)


def _drain(supervised: Supervised) -> None:
    """Have a query take in what is there; one that waits for its interval then ends."""
    running, is_default = supervised.running, supervised.trigger.kind == "default"
    for left in reversed(range(_TRIES)):
        if not running.is_active and supervised.query.kind != "recompute":
            running.start(supervised.trigger if is_default else Trigger("once"))
        try:
            running.drain()
        except PySparkException as error:
            if not left or not is_python_late(error):
                raise
            running.stop()
        else:
            return
