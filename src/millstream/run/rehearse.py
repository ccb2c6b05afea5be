"""A rehearsal: every query is built and held to Spark's rules, without data and without a home."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.build.build import answer, hold_rules, hold_to_declaration, query_line, refused
from millstream.build.event_time import watermarked
from millstream.build.operator import made_by, unfit_operators
from millstream.build.skew import skewed_keys
from millstream.build.unbounded import unbounded_state
from millstream.check import warnings
from millstream.errors import MillstreamError
from millstream.landing.land import Landing
from millstream.model.dataset import Serve, Source
from millstream.model.trigger import Trigger
from millstream.operators.state.forever import noting_forever
from millstream.plan import plan
from millstream.plan.queries import event_time_of
from millstream.run.alerts import hold_to_alert
from millstream.run.serve import hold_to_sinks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location
    from millstream.lake.home import Home
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph

# By whole names: asked for part by part, Java looks for every part in every jar.
_MODES = "org.apache.spark.sql.streaming.OutputMode"
_CHECKER = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"
_STREAMING = "org.apache.spark.sql.execution.streaming"
_EXECUTION = f"{_STREAMING}.runtime.IncrementalExecution"
_WATERMARKS = f"{_STREAMING}.runtime.PropagateWatermarkSimulator"
_OFFSETS = f"{_STREAMING}.checkpointing.OffsetSeqMetadata"
_DEFAULT = "$lessinit$greater$default$"
"""How Scala names the default of a parameter of a constructor, by its place."""


def rehearse(
    graph: Graph, spark: SparkSession, home: Home | None = None
) -> tuple[MillstreamError, ...]:
    """Find what Spark would refuse, all at once, and what it would run but should not for ever.

    A dataset that reads a wrong one is not tried. What has landed in a home, if one is given, is
    looked at for keys that most rows have.
    """
    found: list[MillstreamError] = []
    with tempfile.TemporaryDirectory(prefix="millstream-check-") as nothing:
        stage = _Stage(graph, spark, nothing, home)
        for query in plan(graph):
            try:
                stage.try_out(query.dataset, streaming=query.kind != "recompute")
            except MillstreamError as error:
                found.append(error)
            except _NotTriedError:
                continue
    return (*found, *stage.found)


def hold_to_mode(dataset: Table | Serve, frame: DataFrame, mode: str) -> None:
    """Make sure that Spark can keep the answer up to date in a mode.

    Raises:
        QueryRefusedError: It cannot.
    """
    jvm: Any = frame.sparkSession.sparkContext._jvm
    as_mode = getattr(getattr(jvm, _MODES), mode.capitalize())
    try:
        getattr(jvm, _CHECKER).checkForStreaming(frame._jdf.queryExecution().analyzed(), as_mode())
    except PySparkException as error:
        raise refused(dataset.name, error, dataset.at) from error


def plan_stream(dataset: Table | Serve, frame: DataFrame, mode: str, folder: str) -> None:
    """Have Spark plan the second batch of a query, which has a watermark, as it does in a run.

    Some rules of Spark's are looked at only then: a watermark that is defined twice, or an
    operator that finds two event times.

    Raises:
        QueryRefusedError: Spark refuses it.
    """
    session = frame.sparkSession
    jvm: Any = session.sparkContext._jvm
    execution, offsets = getattr(jvm, _EXECUTION), getattr(jvm, _OFFSETS)
    watermark_ms = now_ms = 1
    checkpoint = Path(folder)
    # Operators that keep state of their own look for the batch that is planned.
    (checkpoint / "offsets").mkdir()
    (checkpoint / "offsets" / "0").touch()
    try:
        execution(
            session._jsparkSession,
            frame._jdf.queryExecution().analyzed(),
            getattr(getattr(jvm, _MODES), mode.capitalize())(),
            (checkpoint / "state").as_uri(),
            jvm.java.util.UUID.randomUUID(),
            jvm.java.util.UUID.randomUUID(),
            0,
            getattr(jvm, "scala.Option").empty(),
            offsets(watermark_ms, now_ms, getattr(offsets, f"{_DEFAULT}3")()),
            getattr(jvm, _WATERMARKS)(),
            True,  # noqa: FBT003 - Spark's constructor has no names
            *(getattr(execution, f"{_DEFAULT}{place}")() for place in (12, 13, 14, 15)),
        ).executedPlan()
    except PySparkException as error:
        raise refused(dataset.name, error, query_line(error, dataset.at)) from error


class _NotTriedError(Exception):
    """A dataset reads one that is wrong itself."""


class _Stage:
    """Streams without rows, of the right columns."""

    def __init__(self, graph: Graph, spark: SparkSession, nothing: str, home: Home | None) -> None:
        self._graph, self._spark, self._nothing, self._home = graph, spark, nothing, home
        self._schemas: dict[str, StructType] = {}
        self.found: list[MillstreamError] = []

    def try_out(self, dataset: Source | Table | Serve, *, streaming: bool) -> None:
        if isinstance(dataset, Source):
            landing = Landing.of(dataset)
            rows = self._spark.createDataFrame([], landing.schema.to_ddl())
            hold_rules(dataset, rows)
            self._schemas[dataset.name] = rows.schema
            return
        if isinstance(dataset, Serve):
            serve = replace(dataset, to=self._graph.sinks_of(dataset))
            if streaming:
                self._try_out_serve(serve)
            else:
                hold_to_sinks(serve, answer(self._graph, serve.name, self._table))
            return
        with made_by(self._graph) as made, noting_forever() as told:
            frame = answer(self._graph, dataset.name, self._stream if streaming else self._table)
        self._warn(dataset, told)
        hold_to_declaration(dataset, frame)
        hold_to_alert(self._graph, dataset, frame)
        if streaming:
            self._plan(dataset, frame, dataset.mode)
            self.found += unbounded_state(dataset, frame, made)
        self._look_for_skew(dataset, frame, made)
        self._schemas[dataset.name] = frame.schema

    def _try_out_serve(self, serve: Serve) -> None:
        said = self._graph.trigger_of(serve)
        trigger = Trigger.parse(said)
        is_continuous = trigger.kind == "continuous"
        with made_by(self._graph) as made, noting_forever() as told:
            frame = answer(self._graph, serve.name, self._rows if is_continuous else self._stream)
        self._warn(serve, told)
        hold_to_sinks(serve, frame)
        self.found += unfit_operators(serve, trigger, said, frame, made)
        if not trigger.is_row_wise:
            self._plan(serve, frame, serve.mode_in(trigger))
            self.found += unbounded_state(serve, frame, made)
            self._look_for_skew(serve, frame, made)

    def _plan(self, dataset: Table | Serve, frame: DataFrame, mode: str) -> None:
        hold_to_mode(dataset, frame, mode)
        with tempfile.TemporaryDirectory(prefix="millstream-plan-") as checkpoint:
            plan_stream(dataset, frame, mode, checkpoint)

    def _warn(
        self, dataset: Table | Serve, told: Sequence[Callable[[str], MillstreamError]]
    ) -> None:
        """Pass on what operators tell, but for what is seen without calling functions."""
        seen = {(error.code, error.at) for error in warnings(self._graph)}
        made = (make(dataset.name) for make in told)
        self.found += {str(e): e for e in made if (e.code, e.at) not in seen}.values()

    def _look_for_skew(
        self, dataset: Table | Serve, frame: DataFrame, made: Sequence[tuple[Location, DataFrame]]
    ) -> None:
        if self._home is not None:
            self.found += skewed_keys(dataset, frame, made, self._graph, self._home)

    def _stream(self, name: str) -> DataFrame:
        return watermarked(self._rows(name), event_time_of(self._graph, name))

    def _rows(self, name: str) -> DataFrame:
        return self._spark.readStream.schema(self._schema(name)).parquet(self._nothing)

    def _table(self, name: str) -> DataFrame:
        return self._spark.createDataFrame([], self._schema(name))

    def _schema(self, name: str) -> StructType:
        dataset = self._graph.datasets[name]
        if name not in self._schemas and isinstance(dataset, Source):
            self.try_out(dataset, streaming=True)
        if name not in self._schemas:
            raise _NotTriedError
        return self._schemas[name]
