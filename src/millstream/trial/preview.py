"""A dataset over a sample of its sources, as one batch: nothing runs, and nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as F

from millstream.build.build import build
from millstream.build.checks import BuiltAnswer, answer_faults, source_faults
from millstream.build.failure import explain
from millstream.errors import raise_faults
from millstream.lake.table import accepted_rows
from millstream.model.dataset import Source, Table, View
from millstream.operators.build_context import BuildOptions
from millstream.trial.sample import Sample, SampleBounds, first_rows, take_sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from millstream.lake.home import Home
    from millstream.model.graph import Graph


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule, and how many rows break it."""

    table: str
    rule: str
    rows: int
    on_violation: str


@dataclass(frozen=True, slots=True)
class SampledAnswer:
    """The answer of a dataset over a sample."""

    frame: DataFrame
    shown: DataFrame
    """The first rows of it, and one more if there are more."""
    samples: tuple[Sample, ...]
    broken: tuple[Broken, ...]


def try_out(
    graph: Graph, name: str, spark: SparkSession, home: Home, bounds: SampleBounds
) -> SampledAnswer:
    """Compute a dataset over a sample of its sources.

    Raises:
        MillstreamError: A source cannot be sampled, a function raised, or Spark refuses a query.
    """
    # Views that SQL datasets create in the session must not meet those of other queries.
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    inputs = _SampledInputs(graph, session, home, bounds)
    dataset = graph.datasets[name]
    try:
        frame = inputs.rows(name)
        shown = first_rows(frame, bounds.rows + 1)
        broken = tuple(inputs.broken())
    except (PySparkException, Py4JError) as error:
        raise explain(error, query=name, at=dataset.at, home=home) from error
    return SampledAnswer(frame, shown, tuple(inputs.samples.values()), broken)


class _SampledInputs:
    """Samples of sources, and answers over those, as the inputs of datasets."""

    def __init__(self, graph: Graph, spark: SparkSession, home: Home, bounds: SampleBounds) -> None:
        self._graph, self._spark, self._home, self._bounds = graph, spark, home, bounds
        self._frames: dict[str, DataFrame] = {}
        self._answers: list[tuple[Table, DataFrame]] = []
        self.samples: dict[str, Sample] = {}

    def rows(self, name: str) -> DataFrame:
        """Return the rows that a reader of a dataset sees."""
        if name not in self._frames:
            self._frames[name] = self._make(name)
        return self._frames[name]

    def broken(self) -> Iterator[Broken]:
        """Count the rows that break a rule of a table."""
        for table, frame in self._answers:
            rules, on_violation = table.expect.rules, table.expect.on_violation
            met = (F.coalesce(F.expr(rule), F.lit(False)) for rule in rules.values())
            counts = frame.agg(*(F.count_if(~each) for each in met)).first() if rules else None
            for rule, rows in zip(rules, counts or (), strict=True):
                if rows:
                    yield Broken(table.name, rule, rows, on_violation)

    def _make(self, name: str) -> DataFrame:
        dataset = self._graph.datasets[name]
        if isinstance(dataset, Source):
            raise_faults(tuple(source_faults(dataset, self._spark)))
            sample = take_sample(dataset, self._spark, self._home, self._bounds)
            self.samples[name] = sample
            return sample.rows
        built = build(self._graph, name, self.rows, BuildOptions(stops_if_raised=True))
        if isinstance(dataset, View):
            return built.frame
        raise_faults(tuple(answer_faults(BuiltAnswer(self._graph, dataset, built))))
        if not isinstance(dataset, Table):
            return built.frame
        self._answers.append((dataset, built.frame))
        return accepted_rows(built.frame, dataset.expect)
