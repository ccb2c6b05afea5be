"""The same application as batch queries over all that is landed, and whether the stream agrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
    TimestampType,
)

from millstream.build.build import build
from millstream.build.checks import BuiltAnswer, DeployedHome, answer_faults
from millstream.build.inputs import Snapshots
from millstream.checkpoint import CheckpointLog
from millstream.errors import fault, raise_faults
from millstream.lake.lease import Lease
from millstream.lake.log import facts_of
from millstream.lake.table import RULES, accepted_rows, open_table_sink, quarantined_rows
from millstream.lake.travel import read_table
from millstream.model.dataset import FunctionalStream, Table
from millstream.model.sketch import is_ordered, kind_of
from millstream.model.state import RAISED, ROW
from millstream.operators.build_context import BuildOptions, of_watermark
from millstream.operators.columns import quoted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.build.build import Built
    from millstream.lake.home import Home
    from millstream.model.graph import Graph

_KEYED = "transformWithStateInPandasExec"
"""Keyed state in Python: patterns and other operators."""

_JOIN = "symmetricHashJoin"

_HOLDING_BACK = ("stateStoreSave", "sessionWindowStateStoreSaveExec", _JOIN, _KEYED)
"""Operators that in append mode emit rows only when the watermark passes."""


@dataclass(frozen=True, slots=True)
class BatchTable:
    """A table that was computed as one batch."""

    name: str
    rows: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the stream's table compares with the batch answer."""

    name: str
    equal: int
    missing: int
    """Rows of the batch answer that the stream's table lacks."""
    extra: int
    """Rows of the stream's table that the batch answer lacks."""
    waiting: int
    """Rows the stream holds back until the watermark passes them: not missing."""

    @property
    def is_equal(self) -> bool:
        """Whether the stream's table is the batch answer, as far as it is final."""
        return self.missing == 0 and self.extra == 0


def run_batch(graph: Graph, spark: SparkSession, home: Home, into: Home) -> tuple[BatchTable, ...]:
    """Compute every table as a batch over what `home` has landed, into a fresh home.

    Raises:
        LIVE_IN_BATCH: A source is live: nothing of it is landed.
        NOTHING_LANDED: A source has not landed anything yet.
    """
    for source in graph.sources:
        if source.live:
            raise fault("LIVE_IN_BATCH", at=source.at, source=source.name)
        if source.name not in home.tables:
            raise fault("NOTHING_LANDED", dataset=graph.app, reads=source.name)
    into.prepare(graph.app, sources=())
    with Lease.acquire(into) as lease:
        read = _LandedAndComputed(graph, spark, home, into)
        homes = (home, into)
        return tuple(
            _compute(graph, table, read, homes, lease.epoch) for table in graph.ordered_tables
        )


def compare(
    graph: Graph, spark: SparkSession, home: Home, computed: Home
) -> tuple[Comparison, ...]:
    """Compare the stream's tables in `home`, and their quarantines, with batch answers."""
    settled = Settled(
        graph, home, _LandedAndComputed(graph, spark, home, computed), Snapshots(graph, spark, home)
    )
    compared = []
    for table in graph.tables:
        built = settled.rebuilt(table)
        compared.append(_compare(spark, table, home, settled, built))
        if home.quarantine(table.name).name in (*home.tables, *computed.tables):
            compared.append(_compare_quarantine(spark, table, (home, computed), settled, built))
    return tuple(compared)


class _LandedAndComputed:
    """Sources as the stream has landed them, tables as the batch has computed them."""

    def __init__(self, graph: Graph, spark: SparkSession, home: Home, into: Home) -> None:
        self._graph = graph
        self._landed = Snapshots(graph, spark, home)
        self._computed = Snapshots(graph, spark, into)

    def __call__(self, name: str) -> DataFrame:
        is_source = self._graph.datasets[name].kind == "source"
        return self._landed(name) if is_source else self._computed(name)


class Settled:
    """Batch answers as far as the stream can have them by now.

    A table that reads one which holds rows back is compared with the answer over the rows that
    were emitted: rows still held back are not missing further down either.
    """

    def __init__(
        self,
        graph: Graph,
        home: Home,
        stored: Callable[[str], DataFrame],
        streamed: Callable[[str], DataFrame],
    ) -> None:
        self._graph, self._home, self._stored, self._streamed = graph, home, stored, streamed
        self.behind_us: dict[str, int] = {}
        """How far the answers of tables are behind their watermarks."""

    def __call__(self, name: str) -> DataFrame:
        """Return the rows that a reader sees."""
        dataset = self._graph.datasets[name]
        if not isinstance(dataset, Table):
            return self._stored(name)
        return self._streamed(name) if holds_back(dataset, self._home) else self.answer(dataset)

    def answer(self, table: Table, built: Built | None = None) -> DataFrame:
        """What a table should hold, but for the rows it holds back itself."""
        built = built or self.rebuilt(table)
        return accepted_rows(built.frame, table.expect) if built else self._stored(table.name)

    def rebuilt(self, table: Table, aside: Path | None = None) -> Built | None:
        """Build an answer over the rows that were emitted, before its rules apply.

        None if no row is held back further up: then the answer over all rows is the one.

        Args:
            table: Whose answer.
            aside: The folder for rows that functions raise on.
        """
        if isinstance(table, FunctionalStream):
            complete_us = facts_of(self._home.table(table.name)).frontier
            options = BuildOptions(
                aside=aside, complete_us=-math.inf if complete_us is None else complete_us
            )
            return build(self._graph, table.name, self, options)
        log = CheckpointLog(self._home.checkpoint(table.name))
        if {_KEYED, _JOIN} & {*log.operators}:
            # A row does not show when a pattern, or a row without a partner, is final; the answer
            # up to the watermark does.
            options = BuildOptions(
                aside=aside,
                complete_us=of_watermark(log.watermark_ms),
                models=self._home.models,
            )
            built = build(self._graph, table.name, self, options)
            self.behind_us[table.name] = built.behind_us
            return built
        upstream = (self._graph.datasets[name] for name in self._graph.upstream(table.name))
        if any(isinstance(d, Table) and holds_back(d, self._home) for d in upstream):
            return build(
                self._graph, table.name, self, BuildOptions(aside=aside, models=self._home.models)
            )
        return None


def _compute(
    graph: Graph, table: Table, read: _LandedAndComputed, homes: tuple[Home, Home], epoch: int
) -> BatchTable:
    home, into = homes
    options = BuildOptions(aside=into.aside(table.name), models=home.models)
    built = build(graph, table.name, read, options)
    raise_faults(
        tuple(answer_faults(BuiltAnswer(graph, table, built, deployed=DeployedHome.of(into))))
    )
    sink = open_table_sink(table, built.frame, into, epoch=epoch, may_raise=built.may_raise)
    batch = sink.facts.batch + 1
    sink.commit(sink.stage(built.frame, batch), batch, "batch")
    totals = sink.facts.counts
    return BatchTable(table.name, totals["written"], totals["quarantined"])


def holds_back(table: Table, home: Home) -> bool:
    """Whether a table has a row only when the watermark has passed what it is made from."""
    if isinstance(table, FunctionalStream):
        return True
    operators = CheckpointLog(home.checkpoint(table.name)).operators
    return table.mode == "append" and not set(_HOLDING_BACK).isdisjoint(operators)


def _compare(
    spark: SparkSession, table: Table, home: Home, settled: Settled, built: Built | None
) -> Comparison:
    wanted = settled.answer(table, built)
    stored = read_table(spark, home, table.name).select(*map(quoted, wanted.columns))
    wanted, stored = _comparable(wanted), _comparable(stored)
    lacking, extra = wanted.exceptAll(stored).cache(), stored.exceptAll(wanted).count()
    missing, waiting = lacking.count(), 0
    if missing and holds_back(table, home):
        behind_us = settled.behind_us.get(table.name, 0)
        waiting = lacking.where(is_open(lacking, table, home, behind_us)).count()
    lacking.unpersist()
    return Comparison(table.name, stored.count() - extra, missing - waiting, extra, waiting)


def _compare_quarantine(
    spark: SparkSession,
    table: Table,
    homes: tuple[Home, Home],
    settled: Settled,
    built: Built | None,
) -> Comparison:
    """Compare the quarantine of the stream with that of the batch, without tracebacks.

    An update table has more in it than the batch: every answer of a key that broke a rule, also if
    a later one did not.
    """
    home, _ = homes
    streamed, batch = (_quarantine(spark, each, table) for each in homes)
    raised = F.col(ROW).isNotNull()
    if built is not None:
        held = quarantined_rows(built.frame, table.expect).withColumn(
            ROW, F.lit(None).cast("string")
        )
        if table.mode == "append":
            batch = held.unionByName(batch.where(raised).select(held.columns))
        else:
            # What functions raise on may change with the rows that are still held back.
            batch, streamed = held, streamed.where(~raised)
    wanted, stored = _comparable(batch), _comparable(streamed.select(batch.columns))
    name = home.quarantine(table.name).name
    if table.mode == "update":
        missing = wanted.subtract(stored).count()
        return Comparison(name, wanted.distinct().count() - missing, missing, extra=0, waiting=0)
    lacking, extra = wanted.exceptAll(stored).cache(), stored.exceptAll(wanted).count()
    missing, waiting = lacking.count(), 0
    if missing and (built is not None or holds_back(table, home)):
        behind_us = settled.behind_us.get(table.name, 0)
        waiting = lacking.where(raised | is_open(lacking, table, home, behind_us)).count()
    lacking.unpersist()
    return Comparison(name, stored.count() - extra, missing - waiting, extra, waiting)


def _quarantine(spark: SparkSession, home: Home, table: Table) -> DataFrame:
    """Read a quarantine, without tracebacks; one that is not there has no rows."""
    name = home.quarantine(table.name).name
    if name in home.tables:
        rows = read_table(spark, home, name)
    else:
        rows = read_table(spark, home, table.name).where(F.lit(False))
        rows = rows.withColumn(RULES, F.array().cast("array<string>"))
    if ROW not in rows.columns:
        rows = rows.withColumn(ROW, F.lit(None).cast("string"))
    return rows.drop(RAISED)


def is_open(rows: DataFrame, table: Table, home: Home, behind_us: int = 0) -> Column:
    """Whether the watermark has not passed a row: the end of its window, or its times."""
    log = CheckpointLog(home.checkpoint(table.name))
    if _KEYED in log.operators or isinstance(table, FunctionalStream):
        return F.lit(False)
    return is_beyond(rows, log.watermark_ms * 1000 - behind_us, if_unknown=True)


def is_beyond(rows: DataFrame, passed_us: int, *, if_unknown: bool) -> Column:
    """Whether a row has the end of a window, or a time, after a moment.

    Args:
        rows: The rows to judge.
        passed_us: The moment, in microseconds.
        if_unknown: The answer for rows that have no time.
    """
    moments = []
    for field in rows.schema.fields:
        if isinstance(field.dataType, StructType) and "end" in field.dataType.names:
            moments.append(quoted(field.name)["end"])
        elif isinstance(field.dataType, TimestampType):
            moments.append(quoted(field.name))
    passed = F.timestamp_micros(F.lit(passed_us))
    still = [F.coalesce(moment > passed, F.lit(False)) for moment in moments]
    return F.greatest(*still, F.lit(False)) if still else F.lit(if_unknown)


def _comparable(rows: DataFrame) -> DataFrame:
    return rows.select(
        *(_exact(quoted(f.name), f.dataType).alias(f.name) for f in rows.schema.fields)
    )


def _exact(column: Column, kind: DataType) -> Column:
    # The last digits of a floating sum depend on the order of addition. A mean of decimals may lie
    # just between two roundings, as 0.5 % of them did; multiplied by pi it does not.
    if isinstance(kind, DoubleType | FloatType):
        return F.format_string("%.9e", column.cast("double") * F.pi())
    if isinstance(kind, MapType | ArrayType):
        return F.to_json(column)
    if isinstance(kind, StructType) and is_ordered(kind.names):
        # Beyond a few rows nothing else is the same for the same rows.
        return column["total"] if kind_of(kind.names) else F.lit(0)
    return column
