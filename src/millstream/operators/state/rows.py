"""The rows of a function of a key, prepared by Spark, and its answers, decoded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from millstream.errors import MillstreamError, SchemaError, closest, fault, listed
from millstream.model.schema import Schema
from millstream.model.state import KeptState
from millstream.operators.build_context import Hold, build_context, notes
from millstream.operators.columns import quoted
from millstream.operators.event_time import behind_us
from millstream.operators.state.buckets import KEY, Keeping, run_keyed
from millstream.operators.state.calls import INITIAL_US, UNTIMED_US, Calls
from millstream.operators.state.codec import JSON
from millstream.operators.state.python_types import is_plain
from millstream.operators.state.refusal import stateful_fault
from millstream.operators.state.row_text import NULLS, as_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from millstream.model.data_type import Field
    from millstream.model.state import KeyedState
    from millstream.operators.state.parts import Keyed
    from millstream.operators.state.stateful import Stateful

_DELAY = "spark.watermarkDelayMs"
_TIME, _TEXT, _END = "us", "text", "end"
_ANSWERS = StructType([StructField("answer", StringType())])
STRICT = {**JSON, "mode": "FAILFAST"}
"""How Spark reads texts that Millstream wrote."""
_OF_KEYS = {**JSON, **NULLS}


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows of keys, as what is done with them must know them."""

    key: Schema
    columns: Schema
    streams: bool
    """Whether they come in batches; otherwise all at once, each with the time of the last."""
    tolerates: bool
    """Whether rows that a function raises on are quarantined."""
    keeps_time: bool
    """Whether there is a clock for timers."""


def emitted(stateful: Stateful, rows: DataFrame) -> DataFrame:
    """Run a function over rows.

    Raises:
        DeclarationError: The rows do not fit what is declared.
    """
    declared = stateful.declared

    def calls(keyed: KeyedRows) -> Calls:
        facts = (keyed.key, keyed.columns, keyed.streams, keyed.tolerates, keyed.keeps_time)
        return Calls(declared, stateful.function, *facts)

    initial = _initial(stateful, rows) if stateful.initial else None
    if rows.isStreaming and not declared.is_bounded:
        notes().forever.append(
            lambda by: fault(
                "STATE_KEPT_FOREVER", at=declared.at, function=declared.name, dataset=by
            )
        )
    if is_plain(declared.emits):
        return keyed_answers(declared, rows, calls, _struct(declared.emits), initial)
    answers = keyed_answers(declared, rows, calls, _ANSWERS, initial)
    schema = declared.emits.to_ddl()
    return answers.select(F.from_json("answer", schema, STRICT).alias("answer")).select("answer.*")


def keyed_answers(
    declared: KeyedState,
    rows: DataFrame,
    make: Callable[[KeyedRows], Keyed],
    answers: StructType,
    initial: DataFrame | None = None,
    *,
    held: timedelta = timedelta(),
) -> DataFrame:
    """Return the answers to rows: each as its event time and its text, by the text of its key.

    Args:
        declared: What is kept of a key.
        rows: All columns that are in the text.
        make: Makes what is done with the rows of a key.
        answers: The columns of an answer.
        initial: What keys begin with, in the form of rows.
        held: How long after the watermark has passed a row its answer may come.

    Raises:
        DeclarationError: The rows do not fit what is declared.
    """
    context = build_context()
    key, columns = _schema(declared, rows, declared.key), _schema(declared, rows, rows.columns)
    time = _time(declared, rows)
    keeps_time = not rows.isStreaming or _has_clock(declared, rows, time)
    notes().states.append(KeptState(declared.name, key, declared.state))
    tolerates = context is not None and not context.options.stops_if_raised
    keyed = make(KeyedRows(key, columns, rows.isStreaming, tolerates, keeps_time))
    clock = "ProcessingTime" if declared.clock == "processing" else "EventTime"
    keeping = Keeping(
        name_in_checkpoint(declared.name),
        clock if keeps_time else "None",  # type: ignore[arg-type]
        context.note_raising(declared.name) if context else None,
    )
    ready = _ready(declared, rows, time)
    if not rows.isStreaming:
        end = ready.agg(F.coalesce(F.max(_TIME), F.lit(0)).alias(_END))
        ready = ready.crossJoin(F.broadcast(end))
        initial = initial.crossJoin(F.broadcast(end)) if initial is not None else None
    elif declared.order == "event":
        notes().holds.append(Hold(held, keeps_times=False))
    behind = behind_us(rows, time) if time else 0
    return run_keyed(ready, keyed, answers, keeping, initial, behind_us=behind)


def key_text(rows: DataFrame, key: Sequence[str]) -> Column:
    """Write the key of each row as the text that functions of keys are called with."""
    return as_key(rows, key, _OF_KEYS)


def name_in_checkpoint(function: str) -> str:
    """Return the name of the state of a function in Spark's checkpoint."""
    return f"kept_{function}"


def _ready(declared: KeyedState, rows: DataFrame, time: str | None) -> DataFrame:
    untimed = UNTIMED_US if declared.order == "event" else 0
    at = F.unix_micros(quoted(time)) if time else F.lit(None).cast("bigint")
    return rows.select(
        key_text(rows, declared.key).alias(KEY),
        F.coalesce(at, F.lit(untimed)).alias(_TIME),
        _json(rows.columns).alias(_TEXT),
    )


def _initial(stateful: Stateful, rows: DataFrame) -> DataFrame:
    """Read the initial state of keys.

    Raises:
        STATEFUL_REFUSED: It is no DataFrame, or a stream.
        STATEFUL_COLUMN: A column of the key or of the state is missing, or of another type.
    """
    declared = stateful.declared
    assert stateful.initial is not None
    frame = stateful.initial(rows.sparkSession)
    if not isinstance(frame, DataFrame) or frame.isStreaming:
        got = "a stream" if isinstance(frame, DataFrame) else type(frame).__name__
        raise stateful_fault(declared.name, "initial", got=got, at=declared.at)
    wanted = StructType([rows.schema[name] for name in declared.key])
    for field in (*wanted.fields, *_struct(declared.state).fields):
        if field.name not in frame.columns:
            why = "which initial does not have"
        elif frame.schema[field.name].dataType.simpleString() != field.dataType.simpleString():
            why = f"which is {frame.schema[field.name].dataType.simpleString()} in initial"
        else:
            continue
        raise _unfit_column(declared, field.name, why, frame.columns)
    return frame.select(
        key_text(frame, declared.key).alias(KEY),
        F.lit(INITIAL_US).cast("bigint").alias(_TIME),
        _json(declared.state.names).alias(_TEXT),
    )


def _schema(declared: KeyedState, rows: DataFrame, names: tuple[str, ...] | list[str]) -> Schema:
    """Return the schema of columns that are passed to a function.

    Raises:
        STATEFUL_COLUMN: A column is missing, or cannot be passed.
    """
    found: list[Field] = []
    for name in names:
        why = ""
        if name not in rows.columns:
            why = "which the rows do not have"
        elif not name.isidentifier():
            why = "which is no name in Python: rename it or leave it out"
        else:
            try:
                found += Schema.parse(StructType([rows.schema[name]])).with_nulls().fields
            except SchemaError as error:
                why = f"which it cannot be given: {error.what}"
        if why:
            raise _unfit_column(declared, name, why, rows.columns)
    return Schema(tuple(found))


def _struct(schema: Schema) -> StructType:
    return StructType.fromJson(json.loads(schema.to_json()))


def _time(declared: KeyedState, rows: DataFrame) -> str | None:
    times = [f.name for f in rows.schema.fields if isinstance(f.dataType, TimestampType)]
    if declared.event_time is not None:
        if declared.event_time not in times:
            why = "which is not a TIMESTAMP of the rows"
            raise _unfit_column(declared, declared.event_time, why, rows.columns)
        return declared.event_time
    if len(times) == 1:
        return times[0]
    if declared.order == "event" or _goes_by_event_time(declared):
        raise fault(
            "STATEFUL_TIME",
            at=declared.at,
            function=declared.name,
            count=len(times),
            candidates=listed(times),
        )
    return None


def _unfit_column(
    declared: KeyedState, column: str, why: str, columns: Sequence[str]
) -> MillstreamError:
    return fault(
        "STATEFUL_COLUMN",
        at=declared.at,
        function=declared.name,
        column=column,
        why=why,
        nearest=closest(column, columns),
        columns=listed(columns),
    )


def _has_clock(declared: KeyedState, rows: DataFrame, time: str | None) -> bool:
    """Whether there is a clock for timers.

    Raises:
        STATEFUL_UNBOUNDED: There must be, and there is no watermark.
    """
    if declared.clock == "processing":
        return True
    if time is not None and _DELAY in (rows.schema[time].metadata or {}):
        return True
    if time is not None and (declared.order == "event" or _goes_by_event_time(declared)):
        raise fault("STATEFUL_UNBOUNDED", at=declared.at, function=declared.name, column=time)
    return False


def _goes_by_event_time(declared: KeyedState) -> bool:
    return declared.clock == "event" and bool(declared.timeout or declared.ttl)


def _json(names: tuple[str, ...] | list[str]) -> Column:
    return F.to_json(F.struct(*map(quoted, names)), JSON)
