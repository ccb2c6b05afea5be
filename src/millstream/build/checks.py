"""What a built answer must fit: its declaration, its table and sinks, its mode and checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from millstream.build.changed_inputs import changed_inputs
from millstream.build.refusal import refused
from millstream.build.row_wise import unfit_operators
from millstream.build.skew import skewed_keys
from millstream.build.states import continued
from millstream.build.stream_plan import OUTPUT_MODES, plan_faults
from millstream.build.unbounded import unbounded_state
from millstream.errors import (
    MillstreamError,
    SchemaError,
    StateChangedError,
    closest,
    fault,
    listed,
)
from millstream.lake.enforce import stored_faults
from millstream.lake.table import RESERVED, table_shape
from millstream.landing.land import Landing
from millstream.model.dataset import Alert, Serve, Source
from millstream.model.sink import DemandingSink, NamingSink, StoreSink, TypedSink
from millstream.plan.queries import event_time_of
from millstream.serve.shape import GONE
from millstream.spark.message import message_of
from millstream.spark.nodes import listed as spark_list, nodes_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from millstream.build.build import Built
    from millstream.errors import Location
    from millstream.lake.home import Home
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph
    from millstream.model.trigger import Trigger

    Faults = Iterator[MillstreamError]

_CLOCKS = ("Current", "Now", "LocalTimestamp")
"""How Spark names expressions that ask the clock."""
_CHECKER = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"


@dataclass(frozen=True, slots=True)
class DeployedHome:
    """Where an answer is deployed, or is to be."""

    home: Home
    tables: Path
    """The folder whose folders the answer reads, each named after a dataset."""

    @staticmethod
    def of(home: Home) -> DeployedHome:
        """Return it for an answer that reads the tables of the home."""
        return DeployedHome(home, home.tables_folder)


@dataclass(frozen=True, slots=True)
class BuiltAnswer:
    """An answer to be checked."""

    graph: Graph
    dataset: Table | Serve
    built: Built
    trigger: Trigger | None = None
    """When it is to run; None if it is computed as a batch."""
    deployed: DeployedHome | None = None
    """What is stored already; None if it does not matter, as in a preview."""


def answer_faults(answer: BuiltAnswer) -> Faults:
    """Find all that is wrong with a built answer: its declaration, its table, its checkpoint.

    What only an open store knows is checked when it is opened, in `systems.existing_table`: the
    columns of its table and their types, and whether an index enforces the key.
    """
    graph, dataset, built = answer.graph, answer.dataset, answer.built
    frame, trigger, deployed = built.frame, answer.trigger, answer.deployed
    if isinstance(dataset, Serve):
        dataset = replace(dataset, to=graph.sinks_of(dataset))
        yield from sink_faults(dataset, frame)
    else:
        yield from table_faults(dataset, frame)
        yield from _cooldown_faults(graph, dataset, frame)
        if deployed is not None:
            path = deployed.home.table(dataset.name)
            yield from stored_faults(path, table_shape(dataset, frame.schema.json()))
    if trigger is not None:
        yield from _mode_faults(graph, dataset, built, trigger)
        if deployed is not None:
            yield from _state_faults(dataset, built, deployed.home)
            yield from changed_inputs(graph, dataset, frame, deployed.home, deployed.tables)


def rehearsal_faults(answer: BuiltAnswer) -> Faults:
    """Find what `answer_faults` does and, if that is nothing, what Spark finds as it plans."""
    found, dataset, trigger = tuple(answer_faults(answer)), answer.dataset, answer.trigger
    yield from found
    if not found and trigger is not None and not trigger.is_row_wise:
        mode = dataset.mode_in(trigger) if isinstance(dataset, Serve) else dataset.mode
        yield from plan_faults(dataset, answer.built.frame, mode)


def answer_warnings(answer: BuiltAnswer) -> Faults:
    """Find what an app can run with, and should not: state that grows, and skewed keys."""
    dataset, built, trigger = answer.dataset, answer.built, answer.trigger
    yield from (make(dataset.name) for make in built.forever)
    is_row_wise = trigger is not None and trigger.is_row_wise
    if trigger is not None and not is_row_wise:
        yield from unbounded_state(dataset, built.frame, built.made)
    if answer.deployed is not None and not is_row_wise:
        home = answer.deployed.home
        yield from skewed_keys(dataset, built.frame, built.made, answer.graph, home)


def table_faults(table: Table, frame: DataFrame) -> Faults:
    """Find keys, partitions and rules that do not fit the answer, and columns that are reserved."""
    named = f"table {table.name!r}"
    for option, columns in (("key", table.key), ("partition_by", table.partition_by)):
        yield from _missing(frame, ((option, column) for column in columns), named, table.at)
    yield from _name_faults(table, frame)
    for column in RESERVED:
        if column in frame.columns:
            yield fault("COLUMN_RESERVED", at=table.at, table=table.name, column=column)
    yield from rule_faults(table, frame)


def rule_faults(dataset: Table | Source, frame: DataFrame) -> Faults:
    """Find rules that are no conditions on the columns."""
    for rule, condition in dataset.expect.rules.items():
        yield from _condition_faults(rule, condition, dataset.name, dataset.at, frame)


def source_faults(source: Source, spark: SparkSession, home: Home | None = None) -> Faults:
    """Find all that is wrong with a source: its event time, its rules, its landing table."""
    landing = Landing.of(source)
    unfit = (*unreadable_schemas(source), *event_time_faults(source, spark))
    landed = StructType.fromJson(json.loads(landing.table_schema))
    yield from unfit or rule_faults(source, spark.createDataFrame([], landed))
    if home is not None and not source.live:
        yield from stored_faults(home.table(source.name), landing.shape)


def unreadable_schemas(source: Source) -> Faults:
    """Find a schema that records of the source's format cannot carry."""
    try:
        Landing.of(source).decode()
    except SchemaError as error:
        yield error.located(source.at.of("schema"))


def event_time_faults(source: Source, spark: SparkSession) -> Faults:
    """Find an expression that does not give a time for each record by itself."""
    expression, records = source.event_time_from, Landing.of(source).records
    if expression is None:
        return
    empty = spark.createDataFrame([], records.to_ddl())
    try:
        found = empty.select(F.expr(expression).alias("at"))
        why = _no_event_time(found)
    except PySparkException as error:
        why = f"Spark refuses: {message_of(error)}"
    if why is not None:
        yield fault(
            "EVENT_TIME_EXPRESSION",
            at=source.at,
            source=source.name,
            expression=expression,
            why=why,
            instead=f"write an expression of type TIMESTAMP over {listed(records.names)}",
        )


def _no_event_time(found: DataFrame) -> str | None:
    """Return why an analyzed expression is not a time of one record."""
    project, *below = nodes_of(found)
    if project.nodeName() != "Project" or len(below) != 1:
        return "needs more than one record"
    [expression] = spark_list(project.expressions())
    for part in parts_of(expression):
        kind = str(part.nodeName())
        if kind.startswith(_CLOCKS) or not part.deterministic():
            return f"gives another time when a record is read again: {part.sql()}"
        if "Subquery" in kind:
            return "has a query in it"
    if not expression.references().size():
        return "reads no column"
    got = found.schema["at"].dataType
    return None if isinstance(got, TimestampType) else f"is {got.simpleString()}, not timestamp"


def cooldown_column(graph: Graph, alert: Alert) -> str | None:
    """Return the column of a cooldown: the one that is declared, else the event time."""
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
        yield fault("RULE_REFUSED", at=at, rule=rule, dataset=dataset, cause=message_of(error))
    else:
        if got != "boolean":
            yield fault("RULE_REFUSED", at=at, rule=rule, dataset=dataset, cause=f"it is {got}")


def sink_faults(serve: Serve, frame: DataFrame) -> Faults:
    """Find columns that sinks need and the answer lacks, or has of another type."""
    yield from _missing(frame, _needed(serve), f"serve {serve.name!r}", serve.at)
    yield from _name_faults(serve, frame)
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


def _name_faults(dataset: Table | Serve, frame: DataFrame) -> Faults:
    """Find columns with names that the table or a store cannot hold."""
    stores = dataset.to if isinstance(dataset, Serve) else ()
    naming = [store for store in stores if isinstance(store, NamingSink)]
    for column in frame.columns:
        reasons = [why for store in naming if (why := store.name_fault(column))]
        if not column or "\0" in column:
            reasons.insert(0, "no table or store can hold that")
        for why in reasons[:1]:
            yield fault("COLUMN_NAME", at=dataset.at, dataset=dataset.name, column=column, why=why)


def _needed(serve: Serve) -> Iterator[tuple[str, str]]:
    for sink in serve.to:
        if isinstance(sink, DemandingSink):
            yield from (("format" if c == "value" else "key", c) for c in sink.columns())
        if isinstance(sink, StoreSink):
            yield from (("key", column) for column in sink.key)
            if sink.newest_by:
                yield "newest_by", sink.newest_by


def _cooldown_faults(graph: Graph, alert: Table, frame: DataFrame) -> Faults:
    """Find an alert whose answer lacks the time of its cooldown."""
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
        trigger_text, mode = graph.trigger_of(dataset), dataset.mode_in(trigger)
        if unfit := unfit_operators(dataset, trigger, trigger_text, built.frame, built.made):
            yield from unfit
            return
    jvm: Any = built.frame.sparkSession.sparkContext._jvm
    as_mode = getattr(getattr(jvm, OUTPUT_MODES), str(mode).capitalize())
    analyzed = built.frame._jdf.queryExecution().analyzed()
    try:
        getattr(jvm, _CHECKER).checkForStreaming(analyzed, as_mode())
    except PySparkException as error:
        yield refused(dataset.name, error, dataset.at)


def _state_faults(dataset: Table | Serve, built: Built, home: Home) -> Faults:
    """Find state in a checkpoint that functions and operators cannot continue."""
    try:
        _ = continued(built.states, dataset, home)
    except StateChangedError as error:
        yield error
