"""From declared functions to DataFrames: whoever reads a dataset is given its rows."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException, QueryContextType
from pyspark.sql import DataFrame, functions as F

from millstream.build.event_time import Orders, watermarked
from millstream.declare import SqlFunction, described
from millstream.declare.cell import place_of
from millstream.errors import (
    ColumnMissingError,
    ColumnReservedError,
    FunctionRaisedError,
    Location,
    MillstreamError,
    NotADataFrameError,
    QueryRefusedError,
    RuleRefusedError,
)
from millstream.lake.table import RESERVED
from millstream.lake.travel import read_snapshot
from millstream.landing.land import Landing
from millstream.model.dataset import Source, View
from millstream.model.trigger import Trigger
from millstream.operators.reference import reading_with
from millstream.spark.words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from millstream.lake.home import Home
    from millstream.model.dataset import Serve, Table
    from millstream.model.graph import Graph


# A batch must hold whole batches of what it reads, so that no watermark runs ahead of a row that
# landing has accepted.
_ALL_FILES = str(2**31 - 1)


_DEFAULT = Trigger("default")
_FIRST_COMMIT = "_delta_log/00000000000000000000.json"


class Streams:
    """What readers are given while an application runs as a stream."""

    def __init__(
        self, graph: Graph, spark: SparkSession, home: Home, trigger: Trigger = _DEFAULT
    ) -> None:
        self._graph, self._spark, self._home, self._trigger = graph, spark, home, trigger
        self.orders = Orders(graph, home)

    def triggered(self, trigger: Trigger) -> Streams:
        """Give the same to who reads by another trigger."""
        streams = Streams(self._graph, self._spark, self._home, trigger)
        streams.orders = self.orders
        return streams

    def raw(self, source: Source) -> DataFrame:
        """The records of a source as they arrive."""
        place = self._home.connector(source.name)
        return source.connector.read(self._spark, place)

    def __call__(self, name: str) -> DataFrame:
        """The rows of a source or table, as a stream."""
        dataset = self._graph.datasets[name]
        event_time = self.orders.event_time(name)
        if isinstance(dataset, Source) and dataset.live:
            if self._trigger.is_row_wise:
                return self._by_row(dataset)
            return watermarked(Landing.of(dataset).live(self.raw(dataset)), event_time)
        table = self._home.table(name)
        reader = self._spark.readStream.format("delta").option("maxFilesPerTrigger", _ALL_FILES)
        if (table / _FIRST_COMMIT).exists():
            # Reading the log from its beginning spares the jobs that list a snapshot: 4 s.
            reader = reader.option("startingVersion", 0)
        rows = reader.load(str(table))
        return watermarked(_right_rows(rows, dataset), event_time)

    def _by_row(self, source: Source) -> DataFrame:
        # What continuous mode can neither count nor hold back for a watermark, it refuses.
        in_real_time = self._trigger.kind == "realtime"
        rows = Landing.of(source).live_by_row(self.raw(source), counted=in_real_time)
        return watermarked(rows, self.orders.event_time(source.name)) if in_real_time else rows


class Snapshots:
    """What readers are given in a batch run: all that is stored, at one version each."""

    def __init__(self, graph: Graph, spark: SparkSession, home: Home) -> None:
        self._graph, self._spark, self._home = graph, spark, home
        self.versions: dict[str, int] = {}

    def __call__(self, name: str) -> DataFrame:
        """The rows of a source or table, as they are stored."""
        rows = read_snapshot(self._spark, self._home.table(name), self.versions.get(name))
        return _right_rows(rows, self._graph.datasets[name])


def answer(graph: Graph, name: str, read: Callable[[str], DataFrame]) -> DataFrame:
    """Build the DataFrame of a table, view or served answer from what it reads; views are inlined.

    Raises:
        UserCodeError: The function raised, was refused by Spark, or returned no DataFrame.
    """
    dataset = graph.datasets[name]
    assert not isinstance(dataset, Source)
    views = {n for n in dataset.reads if isinstance(graph.datasets[n], View)}
    inputs = [answer(graph, n, read) if n in views else read(n) for n in dataset.reads]
    try:
        with reading_with(inputs):
            frame = dataset.build(*inputs)
    except MillstreamError:
        raise
    except AnalysisException as error:
        raise refused(name, error, _query_line(error, dataset)) from error
    except Exception as error:
        at = _user_line(error, dataset.at)
        cause = f"{type(error).__name__}: {error}"
        raise FunctionRaisedError(name, cause=cause, at=at) from error
    if not isinstance(frame, DataFrame):
        raise NotADataFrameError(name, got=described(frame), at=dataset.at)
    return frame


def hold_to_declaration(table: Table, frame: DataFrame) -> None:
    """Make sure that keys, partitions and rules fit the answer.

    Raises:
        ColumnMissingError: A key or partition column is not in the answer.
        ColumnReservedError: The answer has a column Millstream keeps for itself.
        RuleRefusedError: A rule is not a condition on the answer.
    """
    for option, columns in (("key", table.key), ("partition_by", table.partition_by)):
        for column in columns:
            if column not in frame.columns:
                raise ColumnMissingError(
                    option,
                    column,
                    dataset=f"table {table.name!r}",
                    columns=frame.columns,
                    at=table.at,
                )
    for column in RESERVED:
        if column in frame.columns:
            raise ColumnReservedError(column, table=table.name, at=table.at)
    hold_rules(table, frame)


def hold_rules(dataset: Table | Source, frame: DataFrame) -> None:
    """Make sure that every rule is a condition on the columns."""
    for rule, condition in dataset.expect.rules.items():
        hold_condition(rule, condition, dataset.name, dataset.at, frame)


def hold_condition(rule: str, condition: str, dataset: str, at: Location, frame: DataFrame) -> None:
    """Make sure that a text is a condition on the columns.

    Raises:
        RuleRefusedError: It is not.
    """
    try:
        got = frame.select(F.expr(condition).alias("met")).schema["met"].dataType
    except PySparkException as error:
        raise RuleRefusedError(rule, dataset=dataset, cause=words_of(error), at=at) from error
    if got.simpleString() != "boolean":
        cause = f"it is {got.simpleString()}"
        raise RuleRefusedError(rule, dataset=dataset, cause=cause, at=at)


def refused(name: str, error: PySparkException, at: Location) -> QueryRefusedError:
    """Say that Spark refuses a query, in Spark's words."""
    condition = error.getCondition() or type(error).__name__
    return QueryRefusedError(name, condition=condition, cause=words_of(error), at=at)


def _right_rows(rows: DataFrame, dataset: object) -> DataFrame:
    if not isinstance(dataset, Source):
        return rows
    return rows.where("_verdict = 'ok'").select(*Landing.of(dataset).schema.names)


def query_line(error: PySparkException, declared: Location) -> Location:
    """Say which line of the app made the expression that Spark names; or where it is declared."""
    for context in error.getQueryContext():
        if context.contextType() is QueryContextType.DataFrame:
            file, _, line = context.callSite().rpartition(":")
            if line.isdigit() and place_of(file) == declared.file:
                return Location(declared.file, int(line))
    return declared


def _query_line(error: AnalysisException, dataset: Table | View | Serve) -> Location:
    """Say which line Spark means: of a query in SQL, or of the function that made it."""
    if not isinstance(dataset.build, SqlFunction):
        return _user_line(error, dataset.at)
    for context in error.getQueryContext():
        if context.contextType() is QueryContextType.SQL and context.startIndex() >= 0:
            return dataset.build.place_of(context.startIndex())
    return dataset.at


def _user_line(error: BaseException, declared: Location) -> Location:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if place_of(frame.filename) == declared.file]
    return Location(declared.file, lines[-1] or declared.line) if lines else declared
