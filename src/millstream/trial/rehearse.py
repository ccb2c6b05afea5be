"""A rehearsal: every query is built and checked as in a run, without data, and writes nothing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from millstream.build.build import build
from millstream.build.checks import (
    BuiltAnswer,
    DeployedHome,
    answer_warnings,
    rehearsal_faults,
    source_faults,
)
from millstream.build.event_time import watermarked
from millstream.build.states import kept_states
from millstream.check import warnings
from millstream.errors import MillstreamError
from millstream.lake.enforce import with_stored
from millstream.landing.land import Landing
from millstream.model.dataset import Source
from millstream.model.trigger import Trigger
from millstream.operators.build_context import BuildOptions
from millstream.plan import plan
from millstream.plan.queries import event_time_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from millstream.lake.home import Home
    from millstream.model.dataset import Serve, Table
    from millstream.model.graph import Graph
    from millstream.plan import Query


def rehearse(
    graph: Graph, spark: SparkSession, home: Home | None = None
) -> tuple[MillstreamError, ...]:
    """Find all that a run would refuse, at once, and warn of state that grows without bound.

    A dataset is not tried if one that it reads could not be built. If a home is passed, answers are
    also compared with its tables and checkpoints, and its landed rows are searched for skewed keys.
    """
    found: list[MillstreamError] = []
    with tempfile.TemporaryDirectory(prefix="millstream-check-") as nothing:
        rehearsal = _Rehearsal(graph, spark, nothing, home)
        for query in plan(graph):
            try:
                rehearsal.try_out(query)
            except MillstreamError as error:
                found.append(error)
            except _NotTriedError:
                continue
    return tuple({str(error): error for error in (*found, *rehearsal.found)}.values())


class _NotTriedError(Exception):
    """A dataset reads one that could not be built."""


class _Rehearsal:
    """Tries each query over streams without rows, of the right columns."""

    def __init__(self, graph: Graph, spark: SparkSession, nothing: str, home: Home | None) -> None:
        self._graph, self._spark, self._nothing, self._home = graph, spark, nothing, home
        self._schemas: dict[str, StructType] = {}
        self.found: list[MillstreamError] = []

    def try_out(self, query: Query) -> None:
        dataset = query.dataset
        if isinstance(dataset, Source):
            self._try_out_source(dataset)
            return
        graph, home = self._graph, self._home
        trigger = Trigger.parse(graph.trigger_of(dataset)) if query.is_stream else None
        kept = kept_states(dataset.name, home) if home else None
        read, options = self._inputs(trigger), BuildOptions(kept=kept)
        built = build(graph, dataset.name, read, options, traced=True)
        deployed = DeployedHome(home, Path(self._nothing)) if home else None
        answer = BuiltAnswer(graph, dataset, built, trigger, deployed)
        found = tuple(rehearsal_faults(answer)) or tuple(answer_warnings(answer))
        # Some warnings are found without calling functions as well.
        known = {(error.code, error.at) for error in warnings(graph)}
        self.found += (error for error in found if (error.code, error.at) not in known)
        self._schemas[dataset.name] = self._seen_by_readers(dataset, built.frame.schema)

    def _seen_by_readers(self, dataset: Table | Serve, schema: StructType) -> StructType:
        """Add the columns that the table of an answer had earlier."""
        if self._home is None:
            return schema
        stored = with_stored(self._home.table(dataset.name), schema.json())
        return StructType.fromJson(json.loads(stored))

    def _try_out_source(self, source: Source) -> None:
        self.found += source_faults(source, self._spark, self._home)
        rows = self._spark.createDataFrame([], Landing.of(source).schema.to_ddl())
        self._schemas[source.name] = rows.schema

    def _inputs(self, trigger: Trigger | None) -> Callable[[str], DataFrame]:
        if trigger is None:
            return self._table
        return self._rows if trigger.kind == "continuous" else self._stream

    def _stream(self, name: str) -> DataFrame:
        return watermarked(self._rows(name), event_time_of(self._graph, name))

    def _rows(self, name: str) -> DataFrame:
        # A folder for each input: the plan says by its name which one it reads.
        folder = Path(self._nothing) / name
        folder.mkdir(exist_ok=True)
        return self._spark.readStream.schema(self._schema(name)).parquet(str(folder))

    def _table(self, name: str) -> DataFrame:
        return self._spark.createDataFrame([], self._schema(name))

    def _schema(self, name: str) -> StructType:
        dataset = self._graph.datasets[name]
        if name not in self._schemas and isinstance(dataset, Source):
            self._try_out_source(dataset)
        if name not in self._schemas:
            raise _NotTriedError
        return self._schemas[name]
