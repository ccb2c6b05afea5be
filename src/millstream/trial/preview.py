"""A dataset over a sample of its sources, as one batch: nothing runs, and nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as F

from millstream.build.build import build
from millstream.build.checks import rule_faults, table_faults
from millstream.build.failure import explain
from millstream.errors import raise_faults
from millstream.lake.table import rows_let_in
from millstream.landing.land import Landing
from millstream.model.dataset import Source, Table
from millstream.operators.build_context import BuildOptions
from millstream.trial.sample import Bounds, Sample, hold, take_sample

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
class Trial:
    """The answer of a dataset over a sample."""

    frame: DataFrame
    shown: DataFrame
    """The first rows of it, and one more if there are more."""
    samples: tuple[Sample, ...]
    broken: tuple[Broken, ...]


def try_out(graph: Graph, name: str, spark: SparkSession, home: Home, bounds: Bounds) -> Trial:
    """Answer a dataset over a sample of what it is made from.

    Raises:
        MillstreamError: A source cannot be sampled, a function raised, or Spark refuses a query.
    """
    # What SQL datasets name in the session must not be seen, nor forgotten, by anyone else's.
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    stage = _Stage(graph, session, home, bounds)
    dataset = graph.datasets[name]
    try:
        frame = stage.rows(name)
        shown = hold(frame, bounds.rows + 1)
        broken = tuple(stage.broken())
    except (PySparkException, Py4JError) as error:
        raise explain(error, query=name, at=dataset.at, home=home) from error
    return Trial(frame, shown, tuple(stage.samples.values()), broken)


class _Stage:
    """What readers are given: samples of sources, and answers over those."""

    def __init__(self, graph: Graph, spark: SparkSession, home: Home, bounds: Bounds) -> None:
        self._graph, self._spark, self._home, self._bounds = graph, spark, home, bounds
        self._frames: dict[str, DataFrame] = {}
        self._answers: list[tuple[Table, DataFrame]] = []
        self.samples: dict[str, Sample] = {}

    def rows(self, name: str) -> DataFrame:
        """Give what a reader of a dataset is given."""
        if name not in self._frames:
            self._frames[name] = self._make(name)
        return self._frames[name]

    def broken(self) -> Iterator[Broken]:
        """Count the rows that break a rule of a table."""
        for table, frame in self._answers:
            rules, fate = table.expect.rules, table.expect.on_violation
            met = (F.coalesce(F.expr(rule), F.lit(False)) for rule in rules.values())
            counts = frame.agg(*(F.count_if(~each) for each in met)).first() if rules else None
            for rule, rows in zip(rules, counts or (), strict=True):
                if rows:
                    yield Broken(table.name, rule, rows, fate)

    def _make(self, name: str) -> DataFrame:
        dataset = self._graph.datasets[name]
        if isinstance(dataset, Source):
            columns = Landing.of(dataset).schema.to_ddl()
            empty = self._spark.createDataFrame([], columns)
            raise_faults(tuple(rule_faults(dataset, empty)))
            sample = take_sample(dataset, self._spark, self._home, self._bounds)
            self.samples[name] = sample
            return sample.rows
        frame = build(self._graph, name, self.rows, BuildOptions(stops_if_raised=True)).frame
        if not isinstance(dataset, Table):
            return frame
        raise_faults(tuple(table_faults(dataset, frame)))
        self._answers.append((dataset, frame))
        return rows_let_in(frame, dataset.expect)
