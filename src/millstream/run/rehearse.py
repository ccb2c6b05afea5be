"""A rehearsal: every query is built and held to Spark's rules, without data and without a home."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.errors import MillstreamError
from millstream.lake.landing import Landing
from millstream.model.dataset import Serve, Source
from millstream.plan import plan
from millstream.plan.queries import event_time_of
from millstream.run.build import answer, hold_rules, hold_to_declaration, refused, watermarked
from millstream.run.serve import hold_to_sinks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.model.dataset import Table
    from millstream.model.graph import Graph


def rehearse(graph: Graph, spark: SparkSession) -> tuple[MillstreamError, ...]:
    """Find what Spark would refuse, all at once; a dataset that reads a wrong one is not tried."""
    found: list[MillstreamError] = []
    with tempfile.TemporaryDirectory(prefix="millstream-check-") as nothing:
        stage = _Stage(graph, spark, nothing)
        for query in plan(graph):
            try:
                stage.try_out(query.dataset, streaming=query.kind != "recompute")
            except MillstreamError as error:
                found.append(error)
            except _NotTriedError:
                continue
    return tuple(found)


def hold_to_mode(dataset: Table | Serve, frame: DataFrame) -> None:
    """Make sure that Spark can keep the answer up to date in its mode.

    Raises:
        QueryRefusedError: It cannot.
    """
    jvm: Any = frame.sparkSession.sparkContext._jvm
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    of = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(
            frame._jdf.queryExecution().analyzed(), of[dataset.mode or "append"]()
        )
    except PySparkException as error:
        raise refused(dataset.name, error, dataset.at) from error


class _NotTriedError(Exception):
    """A dataset reads one that is wrong itself."""


class _Stage:
    """Streams without rows, of the right columns."""

    def __init__(self, graph: Graph, spark: SparkSession, nothing: str) -> None:
        self._graph, self._spark, self._nothing = graph, spark, nothing
        self._schemas: dict[str, StructType] = {}

    def try_out(self, dataset: Source | Table | Serve, *, streaming: bool) -> None:
        if isinstance(dataset, Source):
            landing = Landing.of(dataset)
            rows = self._spark.createDataFrame([], landing.schema.to_ddl())
            hold_rules(dataset, rows)
            self._schemas[dataset.name] = rows.schema
            return
        frame = answer(self._graph, dataset.name, self._stream if streaming else self._table)
        if isinstance(dataset, Serve):
            hold_to_sinks(dataset, frame)
        else:
            hold_to_declaration(dataset, frame)
        if streaming:
            hold_to_mode(dataset, frame)
        self._schemas[dataset.name] = frame.schema

    def _stream(self, name: str) -> DataFrame:
        rows = self._spark.readStream.schema(self._schema(name)).parquet(self._nothing)
        return watermarked(rows, event_time_of(self._graph, name))

    def _table(self, name: str) -> DataFrame:
        return self._spark.createDataFrame([], self._schema(name))

    def _schema(self, name: str) -> StructType:
        dataset = self._graph.datasets[name]
        if name not in self._schemas and isinstance(dataset, Source):
            self.try_out(dataset, streaming=True)
        if name not in self._schemas:
            raise _NotTriedError
        return self._schemas[name]
