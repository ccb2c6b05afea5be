"""The queries of a run, opened: built, checked, and shut to earlier drivers; nothing is started."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from millstream.build.build import build
from millstream.build.checks import answer_faults, rule_faults
from millstream.build.event_time import Orders
from millstream.build.frontier import StreamFrontier, following
from millstream.build.inputs import Snapshots, Streams
from millstream.build.states import keep_states
from millstream.checkpoint import CheckpointLog
from millstream.errors import fault, raise_faults
from millstream.lake.enforce import Shape, open_table
from millstream.lake.frontier import nothing_known
from millstream.lake.table import open_table_sink
from millstream.landing.land import Landing, LandingSink
from millstream.model.dataset import Serve, Source, SparkSink
from millstream.model.trigger import Trigger
from millstream.observe import Event
from millstream.operators.build_context import BuildOptions
from millstream.run.idle import InputWatermark, machine_clock
from millstream.run.query import StreamOptions, StreamRun
from millstream.run.recompute import RecomputeRun
from millstream.run.references import Renewal
from millstream.run.serve import ServeRun
from millstream.run.supervise import DEFAULT, Restart
from millstream.serve.changes import ChangeLog, Changes
from millstream.serve.stores import Served

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.build.build import Built, Read
    from millstream.lake.frontier import Published
    from millstream.lake.lease import Lease
    from millstream.lake.table import TableSink
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph
    from millstream.operators.build_context import References
    from millstream.plan import Query
    from millstream.run.query import Launch


@dataclass(frozen=True, slots=True)
class RunnerOptions:
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


class Opening:
    """Opens the queries of a run, each after those it reads from."""

    def __init__(
        self,
        graph: Graph,
        spark: SparkSession,
        lease: Lease,
        options: RunnerOptions,
        tell: Callable[[Event], None],
    ) -> None:
        self._graph, self._spark, self._lease, self._home = graph, spark, lease, lease.home
        self._run_options, self._tell = options, tell
        self._streams = Streams(spark, Orders(graph, lease.home))
        self.landings: dict[str, LandingSink] = {}
        """The sinks of sources, by name."""
        self.served: list[Served] = []
        """Connections to stores, to be closed at the end."""

    def open(self, query: Query) -> StreamRun | RecomputeRun | ServeRun:
        """Reach what a query reads and writes, build and check its answer, and open its sink.

        Raises:
            MillstreamError: Something does not fit; nothing was started.
        """
        for source in self.read_directly(query):
            source.connector.reach(self._spark, source.name, source.connector_at)
        for sink in query.dataset.to if isinstance(query.dataset, Serve) else ():
            sink.reach_sink(self._spark, query.name, query.dataset.at)
        if isinstance(query.dataset, Source):
            return self._open_landing(query.dataset)
        self._refuse_if_nothing_landed(query)
        if isinstance(query.dataset, Serve):
            return self._open_serve(query, query.dataset)
        return self._open_table(query, query.dataset)

    def trigger(self, query: Query) -> Trigger:
        """Return when a query runs."""
        if self._run_options.trigger is not None:
            return self._run_options.trigger
        return Trigger.parse(self._graph.trigger_of(query.dataset))

    def read_directly(self, query: Query) -> tuple[Source, ...]:
        """Return the sources that a query reads itself, not from their landings."""
        if isinstance(query.dataset, Source):
            return (query.dataset,)
        inputs = [self._graph.datasets[name] for name in query.after]
        return tuple(i for i in inputs if isinstance(i, Source) and i.live)

    def _refuse_if_nothing_landed(self, query: Query) -> None:
        live = {source.name for source in self.read_directly(query)}
        for name in query.after:
            if name not in live and name not in self._home.tables:
                raise fault("NOTHING_LANDED", dataset=query.name, reads=name)

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
            faults = rule_faults(source, self._spark.createDataFrame([], schema))
            raise_faults(tuple(faults))
        log = CheckpointLog(self._home.checkpoint(source.name))
        staging = self._home.staging(source.name)
        followed = following(source, table, log)
        sink = LandingSink(landing, table, staging, log.planned_at_ms, followed)
        self.landings[source.name] = sink
        return StreamRun(self._streams.raw(source), sink, log, self._options(source.name, "append"))

    def _open_table(self, query: Query, table: Table) -> StreamRun | RecomputeRun:
        options = BuildOptions(aside=self._home.aside(table.name))
        if query.kind == "recompute":
            built = self._checked(query, build(self._graph, table.name, self._stored, options))
            sink = self._table_sink(table, built)
            return RecomputeRun(query, self._graph, self._spark, self._home, sink)
        built, renewal = self._built(query, self._streams, options)
        log = CheckpointLog(self._home.checkpoint(table.name))
        orders = self._streams.orders
        orders.note(table.name, built.frame, built.holds)
        frontier = StreamFrontier(table, built.frame, orders, log, built.holds)
        sink = self._table_sink(table, built, frontier)
        run_options = self._stream_options(table, built, renewal)
        return StreamRun(built.frame, sink, log, run_options)

    def _open_serve(self, query: Query, serve: Serve) -> ServeRun | StreamRun | RecomputeRun:
        serve = replace(serve, to=self._graph.sinks_of(serve))
        if query.kind == "recompute":
            built = self._checked(query, build(self._graph, serve.name, self._stored))
            changes = ChangeLog.begin(self._home, serve.name)
            sink = Changes(self._connect(serve, built.frame, changes), changes)
            return RecomputeRun(query, self._graph, self._spark, self._home, sink)
        streams = self._streams.triggered(self.trigger(query))
        built, renewal = self._built(query, streams, BuildOptions(stops_if_raised=True))
        log = CheckpointLog(self._home.checkpoint(serve.name))
        if len(serve.to) == 1 and isinstance(serve.to[0], SparkSink):
            return ServeRun(serve, serve.to[0], built.frame, log, self._run_options.launch)
        orders = self._streams.orders
        frontier = StreamFrontier(serve, built.frame, orders, log, built.holds)
        served = self._connect(serve, built.frame, log, frontier)
        options = self._stream_options(serve, built, renewal)
        return StreamRun(built.frame, served, log, options)

    @property
    def _stored(self) -> Snapshots:
        return Snapshots(self._graph, self._spark, self._home)

    def _built(
        self, query: Query, read: Read, options: BuildOptions
    ) -> tuple[Built, Renewal | None]:
        """Build a stream over its reference rows, check it, and note what it keeps."""
        # Which line made an operator is asked only where some operators cannot run.
        traced = self.trigger(query).is_row_wise

        def built_with(references: References) -> Built:
            bound = replace(options, references=references)
            return build(self._graph, query.name, read, bound, traced=traced)

        built, renewal = Renewal.of(query, self._home, self._spark, built_with, self._tell)
        self._checked(query, built)
        assert not isinstance(query.dataset, Source)
        keep_states(built.states, query.dataset, self._home)
        return built, renewal

    def _checked(self, query: Query, built: Built) -> Built:
        trigger = self.trigger(query)
        faults = answer_faults(self._graph, query, built, trigger, self._home)
        raise_faults(tuple(faults))
        return built

    def _table_sink(
        self, table: Table, built: Built, published: Published = nothing_known
    ) -> TableSink:
        return open_table_sink(
            table,
            built.frame,
            self._home,
            epoch=self._lease.epoch,
            may_raise=built.may_raise,
            published=published,
        )

    def _connect(
        self,
        serve: Serve,
        frame: DataFrame,
        log: CheckpointLog | ChangeLog,
        published: Published = nothing_known,
    ) -> Served:
        differs = partial(self._differs, serve.name)
        served = Served(
            serve, self._graph.app, frame, log, self._lease, differs, published=published
        )
        self.served.append(served)
        served.open()
        return served

    def _stream_options(
        self, dataset: Table | Serve, built: Built, renewal: Renewal | None
    ) -> StreamOptions:
        name, orders = dataset.name, self._streams.orders
        return replace(
            self._options(name, dataset.mode or "append"),
            renewal=renewal,
            bound=InputWatermark.of(name, built.frame, orders),
            on_dropped=orders.hold_to(dataset, built.frame),
        )

    def _options(self, name: str, mode: str) -> StreamOptions:
        return StreamOptions(mode, partial(self._differs, name), self._run_options.launch)

    def _differs(self, name: str, batch: int) -> None:
        told = f"batch {batch} gave other rows when it was retried; the first ones stand"
        self._tell(Event("differs", name, told))
