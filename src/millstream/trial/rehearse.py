"""A rehearsal: every query is built and checked as Spark would, without data and without a home."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.build.build import build, query_line, refused
from millstream.build.checks import OUTPUT_MODES, answer_faults, rule_faults
from millstream.build.event_time import watermarked
from millstream.build.skew import skewed_keys
from millstream.build.unbounded import unbounded_state
from millstream.check import warnings
from millstream.errors import MillstreamError
from millstream.landing.land import Landing
from millstream.model.dataset import Serve, Source
from millstream.model.trigger import Trigger
from millstream.plan import plan
from millstream.plan.queries import event_time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.lake.home import Home
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph
    from millstream.plan import Query

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
                stage.try_out(query)
            except MillstreamError as error:
                found.append(error)
            except _NotTriedError:
                continue
    return tuple({str(error): error for error in (*found, *stage.found)}.values())


def plan_stream(dataset: Table | Serve, frame: DataFrame, mode: str, folder: str) -> None:
    """Have Spark plan the second batch of a query, which has a watermark, as it does in a run.

    Some rules of Spark's are looked at only then: a watermark that is defined twice, or an
    operator that finds two event times.

    Raises:
        QUERY_REFUSED: Spark refuses it.
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
            getattr(getattr(jvm, OUTPUT_MODES), mode.capitalize())(),
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

    def try_out(self, query: Query) -> None:
        dataset = query.dataset
        if isinstance(dataset, Source):
            self._try_out_source(dataset)
            return
        trigger = Trigger.parse(self._graph.trigger_of(dataset))
        built = build(self._graph, dataset.name, self._inputs(query, trigger), traced=True)
        self._warn(dataset, built.forever)
        if faults := tuple(answer_faults(self._graph, query, built, trigger)):
            self.found += faults
            return
        if query.kind != "recompute" and not trigger.is_row_wise:
            mode = dataset.mode_in(trigger) if isinstance(dataset, Serve) else dataset.mode
            with tempfile.TemporaryDirectory(prefix="millstream-plan-") as checkpoint:
                plan_stream(dataset, built.frame, mode, checkpoint)
            self.found += unbounded_state(dataset, built.frame, built.made)
        self._schemas[dataset.name] = built.frame.schema
        if self._home is not None and not trigger.is_row_wise:
            self.found += skewed_keys(dataset, built.frame, built.made, self._graph, self._home)

    def _try_out_source(self, source: Source) -> None:
        rows = self._spark.createDataFrame([], Landing.of(source).schema.to_ddl())
        if faults := tuple(rule_faults(source, rows)):
            self.found += faults
        else:
            self._schemas[source.name] = rows.schema

    def _inputs(self, query: Query, trigger: Trigger) -> Callable[[str], DataFrame]:
        if query.kind == "recompute":
            return self._table
        return self._rows if trigger.kind == "continuous" else self._stream

    def _warn(
        self, dataset: Table | Serve, told: Sequence[Callable[[str], MillstreamError]]
    ) -> None:
        """Pass on what operators note, but for what is seen without calling functions."""
        seen = {(error.code, error.at) for error in warnings(self._graph)}
        made = (make(dataset.name) for make in told)
        self.found += {str(e): e for e in made if (e.code, e.at) not in seen}.values()

    def _stream(self, name: str) -> DataFrame:
        return watermarked(self._rows(name), event_time_of(self._graph, name))

    def _rows(self, name: str) -> DataFrame:
        return self._spark.readStream.schema(self._schema(name)).parquet(self._nothing)

    def _table(self, name: str) -> DataFrame:
        return self._spark.createDataFrame([], self._schema(name))

    def _schema(self, name: str) -> StructType:
        dataset = self._graph.datasets[name]
        if name not in self._schemas and isinstance(dataset, Source):
            self._try_out_source(dataset)
        if name not in self._schemas:
            raise _NotTriedError
        return self._schemas[name]
