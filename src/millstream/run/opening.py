"""Opening the queries of a run: each is built, checked and fenced; nothing is started."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.streaming.readwriter import DataStreamWriter

from millstream.build.build import build
from millstream.build.checks import BuiltAnswer, DeployedHome, answer_faults, source_faults
from millstream.build.event_time import Orders
from millstream.build.frontier import StreamFrontier, following
from millstream.build.inputs import Snapshots, Streams
from millstream.build.states import keep_states, kept_states
from millstream.checkpoint import CheckpointLog
from millstream.errors import fault, raise_faults
from millstream.lake.change_log import ChangeLog
from millstream.lake.enforce import open_table
from millstream.lake.frontier import nothing_known
from millstream.lake.table import TableSink, open_table_sink
from millstream.lake.unreadable import UnreadableFiles
from millstream.landing.land import Landing
from millstream.landing.landing_sink import LandingSink
from millstream.model.batch import BatchBound
from millstream.model.connector import Beginning, FileReading, Receiving, Registering, TableReading
from millstream.model.dataset import FunctionalStream, Serve, Source
from millstream.model.sink import SparkSink
from millstream.model.trigger import Trigger
from millstream.observe import Event
from millstream.operators.build_context import BuildOptions
from millstream.run.admission import Admission
from millstream.run.file_batches import ReadableFiles
from millstream.run.functional import ProgramAnswer
from millstream.run.idle import InputWatermark, machine_clock
from millstream.run.query import StreamOptions, StreamRun
from millstream.run.recompute import Recomputation, RecomputeRun
from millstream.run.references import Renewal
from millstream.run.serve import ServeRun
from millstream.run.supervise import DEFAULT, Restart
from millstream.serve.changes import Changes
from millstream.serve.serve_sink import ServeSink
from millstream.upkeep.maintain import USUAL, UpkeepOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.build.build import Built, Read
    from millstream.lake.frontier import Published
    from millstream.lake.lease import Lease
    from millstream.lake.log import Facts
    from millstream.landing.inbox import Inbox, Room
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph
    from millstream.operators.build_context import References
    from millstream.plan import Query
    from millstream.run.query import Launch


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How a run behaves."""

    trigger: Trigger | None = None
    """Overrides what the datasets say."""
    restart: Restart = DEFAULT
    fail_fast: bool = False
    """Stop everything at the first query that stops for good."""
    launch: Launch = DataStreamWriter.start
    """How a query is started: by the clock of the machine, unless a test sets its own."""
    now: Callable[[], datetime] = machine_clock
    """That clock."""
    on_commit: Callable[[str, Facts], None] = lambda _name, _facts: None
    """Called with the name of a query and the facts of the batch that it has committed."""
    upkeep: UpkeepOptions = USUAL
    """How tables are maintained beside the batches."""


class Opening:
    """Opens the queries of a run, each after those it reads from."""

    def __init__(
        self,
        graph: Graph,
        spark: SparkSession,
        lease: Lease,
        options: RunnerOptions,
        on_event: Callable[[Event], None],
    ) -> None:
        self._graph, self._spark, self._lease, self._home = graph, spark, lease, lease.home
        self._run_options, self._on_event = options, on_event
        self._orders = Orders(graph, lease.home)
        self.landings: dict[str, LandingSink] = {}
        """The sinks of sources, by name."""
        self.rooms: dict[str, Callable[[], Room]] = {}
        """How much receivers may pass on, by source."""
        self.inboxes: dict[str, Inbox] = {}
        """Where what they pass on waits, while the app runs."""
        self._served: list[ServeSink] = []
        self._admissions: list[Admission] = []

    def open(self, query: Query) -> StreamRun | RecomputeRun | ServeRun:
        """Reach what a query reads and writes, build and check its answer, and open its sink.

        Raises:
            MillstreamError: Something does not fit; nothing was started.
        """
        for source in self.read_directly(query):
            source.connector.reach(self._spark, source.name, source.connector_at)
            raise_faults(tuple(source_faults(source, self._spark, self._home)))
            if isinstance(source.connector, Registering):
                source.connector.register(source.name, self._home.path, source.connector_at)
        for sink in query.dataset.to if isinstance(query.dataset, Serve) else ():
            sink.reach_sink(self._spark, query.name, query.dataset.at)
        if isinstance(query.dataset, Source):
            return self._open_landing(query.dataset)
        self._refuse_if_nothing_landed(query)
        if isinstance(query.dataset, Serve):
            return self._open_serve(query, query.dataset)
        return self._open_table(query, query.dataset)

    def close(self) -> None:
        """Close the connections to stores."""
        for served in self._served:
            served.close()

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
        table = open_table(self._home.table(source.name), landing.shape, epoch=self._lease.epoch)
        log = CheckpointLog(self._home.checkpoint(source.name))
        if isinstance(source.connector, Beginning) and log.planned < 0:
            source.connector.begin(log.path)
        staging = self._home.staging(source.name)
        followed = following(source, table, log)
        sink = LandingSink(landing, table, staging, log.planned_at_ms, followed)
        self.landings[source.name] = sink
        options = replace(self._options(source.name, "append"), files=self._files(source, log))
        if isinstance(source.connector, Receiving):
            admission = self._admission(source, log, is_received=True)
            self.rooms[source.name] = admission.room
            options = replace(options, waiting=partial(self._waiting, source.name))
        else:
            admission = self._admission(source, log)
        options = replace(options, admission=admission)
        streams = Streams(self._spark, self._orders, bounds=admission)
        if isinstance(source.connector, TableReading):
            options = replace(options, reopened=lambda: streams.raw(source))
        return StreamRun(streams.raw(source), sink, log, options)

    def _files(self, source: Source, log: CheckpointLog) -> ReadableFiles | None:
        if not isinstance(source.connector, FileReading):
            return None
        record = UnreadableFiles(self._home.connector(source.name))
        return ReadableFiles(source.connector, self._spark, log, record, self._on_event)

    def _open_table(self, query: Query, table: Table) -> StreamRun | RecomputeRun:
        folder = self._home.tables_folder
        options = BuildOptions(
            aside=self._home.aside(table.name), tables=folder, models=self._home.models
        )
        if query.kind == "recompute":
            if isinstance(table, FunctionalStream):
                # Its program runs when the run does, from where the last one ended.
                options = replace(options, complete_us=-math.inf)
            built = self._checked(query, build(self._graph, table.name, self._stored, options))
            sink = self._table_sink(table, built)
            return self._recomputed(query, sink)
        log = CheckpointLog(self._home.checkpoint(table.name))
        streams, admission = self._streams(query, log)
        options = replace(options, reached_us=lambda: log.watermark_ms * 1000)
        built, renewal = self._built(query, streams, options)
        self._orders.note(table.name, built.frame, built.holds)
        frontier = StreamFrontier(table, built.frame, self._orders, log, built.holds)
        sink = self._table_sink(table, built, frontier)
        run_options = self._stream_options(table, built, renewal)
        return StreamRun(built.frame, sink, log, replace(run_options, admission=admission))

    def _recomputed(self, query: Query, sink: TableSink | Changes) -> RecomputeRun:
        on_commit = partial(self._run_options.on_commit, query.name)
        table, of = query.dataset, (self._graph, self._spark, self._home)
        if isinstance(table, FunctionalStream) and isinstance(sink, TableSink):
            return RecomputeRun(query.name, ProgramAnswer(table, query.after, *of, sink, on_commit))
        return RecomputeRun(query.name, Recomputation(query, *of, sink, on_commit))

    def _open_serve(self, query: Query, serve: Serve) -> ServeRun | StreamRun | RecomputeRun:
        serve = replace(serve, to=self._graph.sinks_of(serve))
        if query.kind == "recompute":
            built = self._checked(query, build(self._graph, serve.name, self._stored))
            changes = ChangeLog.begin(self._home, serve.name)
            sink = Changes(self._connect(serve, built.frame, changes), changes)
            return self._recomputed(query, sink)
        log = CheckpointLog(self._home.checkpoint(serve.name))
        streams, admission = self._streams(query, log)
        bound = BuildOptions(
            stops_if_raised=True, tables=self._home.tables_folder, models=self._home.models
        )
        built, renewal = self._built(query, streams, bound)
        if len(serve.to) == 1 and isinstance(serve.to[0], SparkSink):
            return ServeRun(serve, serve.to[0], built.frame, log, self._run_options.launch)
        frontier = StreamFrontier(serve, built.frame, self._orders, log, built.holds)
        served = self._connect(serve, built.frame, log, frontier)
        options = self._stream_options(serve, built, renewal)
        return StreamRun(built.frame, served, log, replace(options, admission=admission))

    def _streams(self, query: Query, log: CheckpointLog) -> tuple[Streams, Admission]:
        """Return the inputs of a query, and what bounds how much each batch reads of them."""
        admission = self._admission(query.dataset, log)
        return Streams(self._spark, self._orders, self.trigger(query), admission), admission

    def _waiting(self, source: str) -> int | None:
        inbox = self.inboxes.get(source)
        return None if inbox is None else inbox.waiting

    def _admission(
        self,
        dataset: Source | Table | Serve,
        log: CheckpointLog,
        *,
        is_received: bool = False,
    ) -> Admission:
        bound = BatchBound.parse(self._graph.batch_of(dataset))
        cores, taken = self._spark.sparkContext.defaultParallelism, partial(self._taken, dataset)
        admission = Admission(bound, log, cores=cores, is_received=is_received, taken=taken)
        self._admissions.append(admission)
        return admission

    def _taken(self, dataset: Source | Table | Serve) -> int | None:
        """Return how many rows of a dataset its slowest reader takes in a batch, if one says so."""
        table = self._home.table(dataset.name)
        taken = (admission.takes(table) for admission in self._admissions)
        return min((rows for rows in taken if rows is not None), default=None)

    @property
    def _stored(self) -> Snapshots:
        return Snapshots(self._graph, self._spark, self._home)

    def _built(self, query: Query, read: Read, options: BuildOptions) -> tuple[Built, Renewal]:
        """Build a stream over its reference rows, check it, and note what it keeps."""
        # The lines are needed only for triggers that some operators cannot run in.
        traced = self.trigger(query).is_row_wise
        kept = kept_states(query.name, self._home)

        def built_with(references: References) -> Built:
            bound = replace(options, references=references, kept=kept)
            return build(self._graph, query.name, read, bound, traced=traced)

        built, renewal = Renewal.of(query, self._home, self._spark, built_with, self._on_event)
        self._checked(query, built)
        assert not isinstance(query.dataset, Source)
        keep_states(built.states, query.dataset, self._home)
        return built, renewal

    def _checked(self, query: Query, built: Built) -> Built:
        assert not isinstance(query.dataset, Source)
        trigger = self.trigger(query) if query.is_stream else None
        deployed = DeployedHome.of(self._home)
        answer = BuiltAnswer(self._graph, query.dataset, built, trigger, deployed)
        raise_faults(tuple(answer_faults(answer)))
        return built

    def _table_sink(
        self, table: Table, built: Built, published: Published = nothing_known
    ) -> TableSink:
        sink = open_table_sink(
            table,
            built.frame,
            self._home,
            epoch=self._lease.epoch,
            may_raise=built.may_raise,
            published=published,
        )
        return sink if built.complete is None else sink.with_completion(built.complete)

    def _connect(
        self,
        serve: Serve,
        frame: DataFrame,
        log: CheckpointLog | ChangeLog,
        published: Published = nothing_known,
    ) -> ServeSink:
        differs = partial(self._differs, serve.name)
        served = ServeSink(
            serve, self._graph.app, frame, log, self._lease, differs, published=published
        )
        self._served.append(served)
        return served

    def _stream_options(
        self, dataset: Table | Serve, built: Built, renewal: Renewal
    ) -> StreamOptions:
        name, orders = dataset.name, self._orders
        return replace(
            self._options(name, dataset.mode or "append"),
            renewal=renewal,
            bound=InputWatermark.of(name, built.frame, orders),
            on_dropped=orders.dropped_rows_check(dataset, built.frame),
        )

    def _options(self, name: str, mode: str) -> StreamOptions:
        return StreamOptions(
            mode,
            partial(self._differs, name),
            self._run_options.launch,
            on_commit=partial(self._run_options.on_commit, name),
        )

    def _differs(self, name: str, batch: int) -> None:
        text = f"batch {batch} gave other rows when it was retried; the first ones are kept"
        self._on_event(Event("differs", name, text))
