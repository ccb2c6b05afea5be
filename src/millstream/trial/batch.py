"""The same application as batch queries over all that is landed, and whether the stream agrees."""

from __future__ import annotations

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
from millstream.build.checks import table_faults
from millstream.build.inputs import Snapshots
from millstream.checkpoint import CheckpointLog
from millstream.errors import fault, raise_faults
from millstream.lake.lease import Lease
from millstream.lake.table import open_table_sink, rows_let_in
from millstream.lake.travel import read_table
from millstream.model.dataset import Source, Table
from millstream.operators.build_context import BuildOptions, of_watermark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.lake.home import Home
    from millstream.model.graph import Graph

_KEYED = "transformWithStateInPandasExec"
"""Keyed state in Python: patterns and the like."""

_JOIN = "symmetricHashJoin"

_HOLDING_BACK = ("stateStoreSave", "sessionWindowStateStoreSaveExec", _JOIN, _KEYED)
"""Operators that give an append answer only when the watermark passes."""


@dataclass(frozen=True, slots=True)
class BatchTable:
    """A table that was computed as one batch."""

    name: str
    rows: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the stream's table stands to the batch answer."""

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
        tables = (dataset for dataset in graph.ordered if isinstance(dataset, Table))
        return tuple(_compute(graph, table, read, into, lease.epoch) for table in tables)


def compare(
    graph: Graph, spark: SparkSession, home: Home, computed: Home
) -> tuple[Comparison, ...]:
    """Compare the stream's tables in `home` with batch answers, row by row."""
    settled = Settled(
        graph, home, _LandedAndComputed(graph, spark, home, computed), Snapshots(graph, spark, home)
    )
    return tuple(_compare(spark, table, home, settled) for table in graph.tables)


class _LandedAndComputed:
    """Sources as the stream has landed them, tables as the batch has computed them."""

    def __init__(self, graph: Graph, spark: SparkSession, home: Home, into: Home) -> None:
        self._graph = graph
        self._landed = Snapshots(graph, spark, home)
        self._computed = Snapshots(graph, spark, into)

    def __call__(self, name: str) -> DataFrame:
        is_source = isinstance(self._graph.datasets[name], Source)
        return self._landed(name) if is_source else self._computed(name)


class Settled:
    """Batch answers as far as the stream can have them by now.

    Whoever reads a table that holds rows back is compared with the answer over the rows it has
    given; those it still holds are not missing further down either.
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
        """What a reader is given."""
        dataset = self._graph.datasets[name]
        if not isinstance(dataset, Table):
            return self._stored(name)
        return self._streamed(name) if holds_back(dataset, self._home) else self.answer(dataset)

    def answer(self, table: Table) -> DataFrame:
        """What a table should hold, but for the rows it holds back itself."""
        log = CheckpointLog(self._home.checkpoint(table.name))
        if {_KEYED, _JOIN} & {*log.operators}:
            # When a pattern, or a row without a partner, is final, the row does not tell; the
            # answer up to the watermark does.
            options = BuildOptions(complete_us=of_watermark(log.watermark_ms))
            built = build(self._graph, table.name, self, options)
            self.behind_us[table.name] = built.behind_us
            return rows_let_in(built.frame, table.expect)
        upstream = (self._graph.datasets[name] for name in self._graph.upstream(table.name))
        if any(isinstance(d, Table) and holds_back(d, self._home) for d in upstream):
            return rows_let_in(build(self._graph, table.name, self).frame, table.expect)
        return self._stored(table.name)


def _compute(
    graph: Graph, table: Table, read: _LandedAndComputed, into: Home, epoch: int
) -> BatchTable:
    built = build(graph, table.name, read, BuildOptions(aside=into.aside(table.name)))
    raise_faults(tuple(table_faults(table, built.frame)))
    sink = open_table_sink(table, built.frame, into, epoch=epoch, may_raise=built.may_raise)
    batch = sink.facts.batch + 1
    sink.commit(sink.stage(built.frame, batch), batch, "batch")
    totals = sink.facts.counts
    return BatchTable(table.name, totals["written"], totals["quarantined"])


def holds_back(table: Table, home: Home) -> bool:
    """Whether a table gives a row only when the watermark has passed it."""
    operators = CheckpointLog(home.checkpoint(table.name)).operators
    return table.mode == "append" and not set(_HOLDING_BACK).isdisjoint(operators)


def _compare(spark: SparkSession, table: Table, home: Home, settled: Settled) -> Comparison:
    wanted = settled.answer(table)
    held = read_table(spark, home, table.name).select(wanted.columns)
    wanted, held = _comparable(wanted), _comparable(held)
    lacking, extra = wanted.exceptAll(held).cache(), held.exceptAll(wanted).count()
    missing, waiting = lacking.count(), 0
    if missing and holds_back(table, home):
        behind_us = settled.behind_us.get(table.name, 0)
        waiting = lacking.where(is_open(lacking, table, home, behind_us)).count()
    lacking.unpersist()
    return Comparison(table.name, held.count() - extra, missing - waiting, extra, waiting)


def is_open(rows: DataFrame, table: Table, home: Home, behind_us: int = 0) -> Column:
    """Whether the watermark has not passed a row: the end of its window, or its times."""
    log = CheckpointLog(home.checkpoint(table.name))
    if _KEYED in log.operators:
        return F.lit(False)
    return is_beyond(rows, log.watermark_ms * 1000 - behind_us, if_unknown=True)


def is_beyond(rows: DataFrame, passed_us: int, *, if_unknown: bool) -> Column:
    """Whether a row has the end of a window, or a time, after a moment.

    Args:
        rows: Of which each is asked.
        passed_us: The moment, in microseconds.
        if_unknown: What is said of rows that have no time.
    """
    moments = []
    for field in rows.schema.fields:
        if isinstance(field.dataType, StructType) and "end" in field.dataType.names:
            moments.append(F.col(f"`{field.name}`.end"))
        elif isinstance(field.dataType, TimestampType):
            moments.append(F.col(f"`{field.name}`"))
    passed = F.timestamp_micros(F.lit(passed_us))
    still = [F.coalesce(moment > passed, F.lit(False)) for moment in moments]
    return F.greatest(*still, F.lit(False)) if still else F.lit(if_unknown)


def _comparable(rows: DataFrame) -> DataFrame:
    return rows.select(
        *(_exact(F.col(f"`{f.name}`"), f.dataType).alias(f.name) for f in rows.schema.fields)
    )


def _exact(column: Column, kind: DataType) -> Column:
    # The last digits of a floating sum depend on the order of addition. A mean of decimals may lie
    # just between two roundings, 0.5 % of them did; times pi it does not.
    if isinstance(kind, DoubleType | FloatType):
        return F.format_string("%.9e", column.cast("double") * F.pi())
    if isinstance(kind, MapType | ArrayType):
        return F.to_json(column)
    return column
