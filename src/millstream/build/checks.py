"""What a built answer must fit: its declaration, its sinks, its mode and its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from millstream.build.build import refused
from millstream.build.row_wise import unfit_operators
from millstream.build.states import continued
from millstream.errors import MillstreamError, StateChangedError, closest, fault, listed
from millstream.lake.table import RESERVED
from millstream.model.dataset import Alert, DemandingSink, Serve, Source, StoreSink, TypedSink
from millstream.plan.queries import event_time_of
from millstream.serve.shape import GONE
from millstream.spark.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from millstream.build.build import Built
    from millstream.errors import Location
    from millstream.lake.home import Home
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph
    from millstream.model.trigger import Trigger
    from millstream.plan import Query

    Faults = Iterator[MillstreamError]

# By whole names: asked for part by part, Java looks for every part in every jar.
OUTPUT_MODES = "org.apache.spark.sql.streaming.OutputMode"
_CHECKER = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"


def answer_faults(
    graph: Graph, query: Query, built: Built, trigger: Trigger, home: Home | None = None
) -> Faults:
    """Find all that is wrong with a built answer.

    Args:
        graph: What is declared.
        query: What the answer is of.
        built: The answer.
        trigger: When it is to run.
        home: Where it is deployed, or is to be; None if it is only tried.
    """
    dataset, frame = query.dataset, built.frame
    assert not isinstance(dataset, Source)
    if isinstance(dataset, Serve):
        dataset = replace(dataset, to=graph.sinks_of(dataset))
        yield from sink_faults(dataset, frame)
    else:
        yield from table_faults(dataset, frame)
        yield from _cooldown_faults(graph, dataset, frame)
    if query.kind != "recompute":
        yield from _mode_faults(graph, dataset, built, trigger)
        yield from _state_faults(dataset, built, home)


def table_faults(table: Table, frame: DataFrame) -> Faults:
    """Find keys, partitions and rules that do not fit the answer, and columns that are reserved."""
    named = f"table {table.name!r}"
    for option, columns in (("key", table.key), ("partition_by", table.partition_by)):
        yield from _missing(frame, ((option, column) for column in columns), named, table.at)
    for column in RESERVED:
        if column in frame.columns:
            yield fault("COLUMN_RESERVED", at=table.at, table=table.name, column=column)
    yield from rule_faults(table, frame)


def rule_faults(dataset: Table | Source, frame: DataFrame) -> Faults:
    """Find rules that are no conditions on the columns."""
    for rule, condition in dataset.expect.rules.items():
        yield from _condition_faults(rule, condition, dataset.name, dataset.at, frame)


def cooldown_column(graph: Graph, alert: Alert) -> str | None:
    """Name the column that a cooldown goes by: the one that is declared, else the event time."""
    known = event_time_of(graph, alert.name)
    return alert.event_time or (known.column if known else None)


def _missing(
    frame: DataFrame, needed: Iterator[tuple[str, str]], dataset: str, at: Location
) -> Faults:
    for option, column in needed:
        if column not in frame.columns:
            yield fault(
                "COLUMN_MISSING",
                at=at,
                dataset=dataset,
                option=option,
                column=column,
                nearest=closest(column, frame.columns),
                columns=listed(frame.columns),
            )


def _condition_faults(
    rule: str, condition: str, dataset: str, at: Location, frame: DataFrame
) -> Faults:
    try:
        got = frame.select(F.expr(condition).alias("met")).schema["met"].dataType.simpleString()
    except PySparkException as error:
        yield fault("RULE_REFUSED", at=at, rule=rule, dataset=dataset, cause=words_of(error))
    else:
        if got != "boolean":
            yield fault("RULE_REFUSED", at=at, rule=rule, dataset=dataset, cause=f"it is {got}")


def sink_faults(serve: Serve, frame: DataFrame) -> Faults:
    """Find columns that sinks need and the answer lacks, or has of another type."""
    yield from _missing(frame, _needed(serve), f"serve {serve.name!r}", serve.at)
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    for sink in serve.to:
        for column, allowed in sink.types().items() if isinstance(sink, TypedSink) else ():
            if kinds.get(column, allowed[0]) not in allowed:
                why = f"records of this format are made of {column!r}, which is {kinds[column]}"
                use = f"cast it to {' or '.join(allowed)}, or leave format= out"
                yield fault(
                    "STORE_MODE", at=serve.at, serve=serve.name, store="Kafka", why=why, use=use
                )
        if isinstance(sink, StoreSink) and sink.delete_when:
            condition = sink.delete_when
            yield from _condition_faults("delete_when", condition, serve.name, serve.at, frame)
    for column in frame.columns:
        if column.startswith(GONE):
            yield fault("COLUMN_RESERVED", at=serve.at, table=serve.name, column=column)


def _needed(serve: Serve) -> Iterator[tuple[str, str]]:
    for sink in serve.to:
        if isinstance(sink, DemandingSink):
            yield from (("format" if c == "value" else "key", c) for c in sink.columns())
        if isinstance(sink, StoreSink):
            yield from (("key", column) for column in sink.key)
            if sink.newest_by:
                yield "newest_by", sink.newest_by


def _cooldown_faults(graph: Graph, alert: Table, frame: DataFrame) -> Faults:
    """Find an alert whose answer lacks the time that its cooldown goes by."""
    if not isinstance(alert, Alert) or (alert.cooldown is None and alert.event_time is None):
        return
    column = cooldown_column(graph, alert)
    found = _type_of(frame.schema, column) if column else None
    if not isinstance(found, TimestampType | TimestampNTZType):
        why = "no column of its answer is known to be the event time"
        if column is not None:
            why = f"its answer has no {column!r}"
        if found is not None:
            why = f"{column!r} is {found.simpleString()}, not a time"
        yield fault(
            "COOLDOWN_TIME",
            at=alert.at,
            alert=alert.name,
            why=why,
            columns=", ".join(frame.columns),
        )


def _type_of(schema: DataType, path: str) -> DataType | None:
    for name in path.split("."):
        if not isinstance(schema, StructType) or name not in schema.names:
            return None
        schema = schema[name].dataType
    return schema


def _mode_faults(graph: Graph, dataset: Table | Serve, built: Built, trigger: Trigger) -> Faults:
    """Find what Spark cannot keep up to date in the mode and at the trigger of a query."""
    mode = dataset.mode
    if isinstance(dataset, Serve):
        said, mode = graph.trigger_of(dataset), dataset.mode_in(trigger)
        if unfit := unfit_operators(dataset, trigger, said, built.frame, built.made):
            yield from unfit
            return
    jvm: Any = built.frame.sparkSession.sparkContext._jvm
    as_mode = getattr(getattr(jvm, OUTPUT_MODES), str(mode).capitalize())
    analyzed = built.frame._jdf.queryExecution().analyzed()
    try:
        getattr(jvm, _CHECKER).checkForStreaming(analyzed, as_mode())
    except PySparkException as error:
        yield refused(dataset.name, error, dataset.at)


def _state_faults(dataset: Table | Serve, built: Built, home: Home | None) -> Faults:
    """Find state in a checkpoint that functions and operators cannot continue."""
    try:
        _ = continued(built.states, dataset, home) if home else ()
    except StateChangedError as error:
        yield error
