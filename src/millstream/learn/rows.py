"""The table of a model: made from the rows that it learns from, and read as rows or as versions."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from inspect import isfunction
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    LongType,
    NumericType,
    StringType,
    StructType,
    TimestampType,
)

from millstream.errors import closest, fault, listed
from millstream.learn.columns import (
    BYTES,
    DIGEST,
    DRIFT,
    KIND,
    LEARNT,
    LIBRARY,
    METRICS,
    NAME,
    OWN,
    PREDICTION,
    RECENT,
    SCORE,
    SCORED,
)
from millstream.learn.learner import Recipe, Task, default_metrics, new_learner, task_of
from millstream.learn.learning import STATE, Learning
from millstream.learn.merging import is_merging
from millstream.learn.slices import Slices, Waiting
from millstream.model.duration import parse_duration
from millstream.model.schema import Schema
from millstream.model.state import KeptOperator, KeyedState
from millstream.operators.build_context import build_context, complete_us, notes
from millstream.operators.columns import quoted
from millstream.operators.state.rows import STRICT, key_text, keyed_answers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pyspark.sql import Column, DataFrame

    from millstream.errors import MillstreamError
    from millstream.learn.learning import Return
    from millstream.model.dataset import Model
    from millstream.operators.state.rows import KeyedRows

MODEL = "millstream.model"
"""The metadata of `prediction` that say which model it is of."""

_CALL = "@app.model"
_PARTS = 64
"""How many keys the rows have that wait for their slice, so that many tasks do."""
_WAITING = Schema.parse("waiting BIGINT")
"""A state that is never set: only rows are kept."""
_EVERYBODY = "model"
"""The key of a model that learns from all rows."""
_ANSWERS = StructType.fromJson(
    json.loads(
        Schema.parse(
            "kind STRING, key STRING, text STRING, us BIGINT, prediction STRING, score DOUBLE, "
            "drifts BOOLEAN, learnt BIGINT, version STRING, model BINARY, digest STRING, "
            "made_with STRING, metrics STRING, recent STRING"
        ).to_json()
    )
)
_FEATURES = (NumericType, BooleanType, StringType)


def learnt(model: Model, rows: DataFrame, returns: tuple[Return, ...] = ()) -> DataFrame:
    """Return each row as it was scored before it was learnt, and the versions of the model.

    Args:
        model: As it is declared.
        rows: What it learns from.
        returns: To earlier versions.

    Raises:
        MODEL_COLUMN: A column is missing, or of a type that cannot be learnt.
    """
    recipe, time = recipe_of(model, rows)
    if is_merging(new := recipe.new()) or isfunction(new):
        _check_options(model, recipe, new)
        return _learnt_by_slices(model, recipe, rows, time)
    every_us = parse_duration(model.every) // timedelta(microseconds=1)
    key = model.key or (_EVERYBODY,)
    keyed = _with_key(model, rows)
    declared = KeyedState(
        model.name, key, Schema.parse(STATE), Schema(()), model.at, event_time=time
    )

    def learning(of: KeyedRows) -> Learning:
        return Learning(recipe, declared, of, every_us, returns)

    notes().states.append(KeptOperator(_CALL, recipe.facts(), at=model.at))
    answers = keyed_answers(declared, keyed, learning, _ANSWERS)
    label = rows.schema[model.label].dataType if model.label else None
    return _table(model, rows, time, answers, _prediction_type(recipe.task, label))


def _with_key(model: Model, rows: DataFrame) -> DataFrame:
    """Return rows with the columns by which each finds its model."""
    return rows if model.key else rows.withColumn(_EVERYBODY, F.lit(model.name))


def by_key(model: Model, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return columns of rows after the text by which each finds its model."""
    keyed = _with_key(model, rows)
    return keyed.select(key_text(keyed, model.key or (_EVERYBODY,)), *columns)


def _learnt_by_slices(model: Model, recipe: Recipe, rows: DataFrame, time: str) -> DataFrame:
    """Return rows that a slice is complete with; then, or by what is noted, scored and learnt."""
    every = parse_duration(model.every)
    every_us = every // timedelta(microseconds=1)
    part = F.pmod(F.xxhash64(*map(quoted, (time, *recipe.features))), F.lit(_PARTS))
    declared = KeyedState(
        model.name, (_EVERYBODY,), _WAITING, Schema(()), model.at, event_time=time
    )

    def waiting(of: KeyedRows) -> Waiting:
        return Waiting(recipe, declared, of, every_us)

    notes().states.append(KeptOperator(_CALL, recipe.facts(), at=model.at))
    parted = rows.withColumn(_EVERYBODY, part)
    answers = keyed_answers(declared, parted, waiting, _ANSWERS, held=every)
    label = rows.schema[model.label].dataType if model.label else None
    table = _table(model, rows, time, answers, _prediction_type(recipe.task, label))
    slices = Slices(model, recipe, time, every_us)
    if not rows.isStreaming:
        return replace(slices, is_whole=complete_us() == math.inf)(table)
    context = build_context()
    folder = context.options.tables if context else None
    notes().completing.append(replace(slices, stored=folder and folder / model.name))
    return table


def recipe_of(model: Model, rows: DataFrame) -> tuple[Recipe, str]:
    """Return what a model predicts and from what, and the event time of its rows.

    Raises:
        MODEL_COLUMN: A column is missing, or of a type that cannot be learnt.
    """
    time = _time(model, rows)
    features = _features(model, rows, time)
    label = rows.schema[model.label].dataType if model.label else None
    is_number = isinstance(label, DoubleType | FloatType)
    new = new_learner(model.learner, model.classes)
    _check_types(model, rows, new, features)
    is_by_row = not (is_merging(new) or isfunction(new))
    task = task_of(new, has_label=label is not None, is_number=is_number)
    recipe = Recipe(
        model.learner,
        features,
        model.label,
        model.classes or getattr(new, "labels", ()),
        task,
        isinstance(label, BooleanType),
        model.metrics or (default_metrics(task) if label is not None and is_by_row else ()),
        model.window,
        model.drift,
    )
    return recipe, time


def scored_rows(name: str, table: DataFrame) -> DataFrame:
    """Return what a reader of a model gets: its rows as they were scored, without its versions."""
    names = [name for name in table.columns if name not in OWN]
    columns = [*map(quoted, names), F.col(PREDICTION), F.col(SCORE), F.col(DRIFT), F.col(LEARNT)]
    scored = table.where(F.col(KIND) == SCORED).select(columns)
    return scored.withMetadata(PREDICTION, {MODEL: name})


def rows_alone(table: DataFrame) -> DataFrame:
    """Return the rows that a model has learnt from, from its table."""
    return table.select(*(quoted(name) for name in table.columns if name not in OWN))


def _table(
    model: Model, rows: DataFrame, time: str, answers: DataFrame, prediction: DataType
) -> DataFrame:
    """Read the texts of answers into the columns of the table."""
    row = F.from_json("text", _plain(rows, rows.columns), STRICT)
    key = F.from_json("key", _plain(rows, model.key), STRICT) if model.key else F.lit(None)
    read = answers.select("*", row.alias("row"), key.alias("of"))

    def column(name: str) -> Column:
        value = quoted(name, "row")
        if name == time:
            return F.timestamp_micros("us").alias(name)
        return (F.coalesce(value, quoted(name, "of")) if name in model.key else value).alias(name)

    measured = "MAP<STRING, DOUBLE>"
    return read.select(
        F.col("kind").alias(KIND),
        *map(column, rows.columns),
        F.col("prediction").cast(prediction).alias(PREDICTION),
        F.col("score").alias(SCORE),
        F.col("drifts").alias(DRIFT),
        F.col("learnt").alias(LEARNT),
        F.col("version").alias(NAME),
        F.col("model").alias(BYTES),
        F.col("digest").alias(DIGEST),
        F.col("made_with").alias(LIBRARY),
        F.from_json("metrics", measured, STRICT).alias(METRICS),
        F.from_json("recent", measured, STRICT).alias(RECENT),
    )


def _check_types(model: Model, rows: DataFrame, learner: Any, features: Sequence[str]) -> None:
    """Check that a learner whose statistics merge can add up its columns.

    Raises:
        MODEL_COLUMN: It cannot.
    """
    if not is_merging(learner):
        return
    name = type(learner).__name__
    for feature in features:
        if isinstance(rows.schema[feature].dataType, StringType) and not learner.takes_text:
            why = f"which is a STRING, and {name} learns from numbers"
            raise _refused(model, feature, why, rows.columns)
    kind = rows.schema[model.label].dataType if model.label else None
    wanted = {"LinearRegression": NumericType, "LogisticRegression": NumericType | BooleanType}
    if kind is not None and not isinstance(kind, wanted.get(name, DataType)):
        why = f"which is {kind.simpleString()}, and {name} predicts numbers, or true and false"
        raise _refused(model, str(model.label), why, rows.columns)


def _check_options(model: Model, recipe: Recipe, learner: Any) -> None:
    """Check what a learner that learns slices can have.

    Raises:
        MODEL_OPTION: It has something else.
    """
    wants = getattr(learner, "task", None)
    has_label = model.label is not None
    alike = {type(metric).__name__ for metric in recipe.metrics}
    has_chances = any(not getattr(metric, "requires_labels", True) for metric in recipe.metrics)
    cannot = "which its learner cannot have"
    for option, is_wrong, why in (
        ("key=", model.key, f"{cannot}: it learns one model of all rows"),
        ("drift=", model.drift is not None, f"{cannot}: it sees no single errors"),
        ("metrics=", has_chances, "of which one needs the probability of each row"),
        (
            "metrics=",
            recipe.task is Task.NUMBER and not alike <= {"MAE", "MSE", "RMSE"},
            "of which one is not a mean of errors",
        ),
        ("label=", wants is Task.CLUSTER and has_label, f"{cannot}: it has no labels"),
        ("no label=", wants not in (None, Task.CLUSTER) and not has_label, "which it learns"),
    ):
        if is_wrong:
            raise fault("MODEL_OPTION", at=model.at, model=model.name, option=option, why=why)


def _plain(rows: DataFrame, names: Sequence[str]) -> StructType:
    """Return columns without metadata, all nullable."""
    kind = StructType()
    for name in names:
        kind = kind.add(name, rows.schema[name].dataType)
    return kind


def _prediction_type(task: Task, label: DataType | None) -> DataType:
    if task in (Task.NUMBER, Task.ANOMALY):
        return DoubleType()
    return LongType() if task is Task.CLUSTER or label is None else label


def _time(model: Model, rows: DataFrame) -> str:
    times = [f.name for f in rows.schema.fields if isinstance(f.dataType, TimestampType)]
    if model.event_time is None and len(times) == 1:
        return times[0]
    if model.event_time in times:
        return str(model.event_time)
    why = "which is not a TIMESTAMP of the rows"
    if model.event_time is None:
        why = f"which orders the rows: {len(times)} are of type TIMESTAMP"
    raise _refused(model, model.event_time or "event_time", why, times)


def _features(model: Model, rows: DataFrame, time: str) -> tuple[str, ...]:
    """Return the columns that a model predicts from.

    Raises:
        MODEL_COLUMN: One does not exist, or cannot be learnt from.
    """
    for name in (*model.not_features, *model.features):
        if name not in rows.columns:
            raise _refused(model, name, "which the rows do not have", rows.columns)
    for name in rows.columns:
        if name in OWN or name == _EVERYBODY:
            raise _refused(model, name, "which is a name of the model's table", rows.columns)
    others = [n for n in rows.columns if n not in (*model.not_features, time)]
    features = model.features or tuple(others)
    for name in features:
        kind = rows.schema[name].dataType
        if not isinstance(kind, _FEATURES):
            why = f"which is a feature of type {kind.simpleString()}"
            raise _refused(model, name, why, others)
    if not features:
        raise _refused(model, "features", "of which there is none", rows.columns)
    return features


def _refused(model: Model, column: str, why: str, columns: Sequence[str]) -> MillstreamError:
    return fault(
        "MODEL_COLUMN",
        at=model.at,
        model=model.name,
        column=column,
        why=why,
        nearest=closest(column, columns),
        columns=listed(tuple(columns)),
    )
