"""Scoring rows with a model: a version of one that learns, or one that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal

from millstream.declare.dataset import described
from millstream.declare.function import location_of_caller
from millstream.errors import Location, fault
from millstream.learn.onnx import SUFFIX, OnnxModel
from millstream.learn.pickled import canonical_bytes, digest_of
from millstream.learn.scoring import (
    IS_RIGHT,
    PARTS,
    Aside,
    FeaturesAlone,
    Scoring,
    TrainedElsewhere,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from millstream.learn.scoring import ScoringModel

VERSION = "version"
"""The column that says which version scored a row."""
_OWN = ("prediction", "score", VERSION)


_SCORED = "_scored"
_DIGITS = 12


def score(
    rows: DataFrame,
    model: object,
    *,
    version: str | None = None,
    features: Sequence[str] = (),
    returns: str = "DOUBLE",
    on_error: Literal["raise", "quarantine"] = "raise",
) -> DataFrame:
    """Return rows with `prediction`, `score` and the `version` that scored them.

    A model that the function reads is used in its newest version, and in a stream in the newest
    one when a batch begins; a batch that is retried uses the same again. Before there is a
    version, and for rows whose features are null, all three are null.

    Args:
        rows: Of a stream or of a batch, with the features of the model.
        model: A model of the app, as the function gets it; or one that was trained elsewhere: an
            estimator of scikit-learn or River, a fitted pipeline of Spark ML, the path of an ONNX
            file, or a function of a pandas DataFrame of the features that returns one prediction
            for each row.
        version: The version that is always used, such as `"2026-01-01 12:00"`; of a model that
            was trained elsewhere, what it is to be called.
        features: What a model that was trained elsewhere predicts from.
        returns: The type of what it predicts.
        on_error: What becomes of a row that the model raises on. By default the query stops. With
            `quarantine`, the row goes into the quarantine of the table with the reason, and so do
            rows whose features are null, NaN or infinite; a serve has no quarantine, and stops.

    Raises:
        DeclarationError: It is no model, or the rows lack its features.
    """
    from pyspark.sql import DataFrame

    at = location_of_caller()
    if on_error not in ("raise", "quarantine"):
        raise refused(at, f"on_error={on_error!r} is neither 'raise' nor 'quarantine'")
    if clash := {*PARTS, _SCORED}.intersection(rows.columns):
        raise refused(at, f"the rows have a column {min(clash)!r}, which is one of Millstream's")
    aside = Aside.of(on_error)
    if isinstance(model, DataFrame):
        from millstream.learn.versions import with_versions

        chosen = with_versions(rows, model, version, at)
        return scored(chosen, aside, at)
    if not features:
        _check_is_model(model, at)
        raise refused(at, "the features of a model that was trained elsewhere are not known")
    kind = _type(rows, returns)
    from millstream.learn.spark_ml import is_spark_ml, transformed

    if is_spark_ml(model):
        _check_columns(rows.columns, features, at)
        named: Any = model
        own = rows.columns
        if aside.tolerates:
            rows = scored(Chosen(rows, FeaturesAlone(tuple(features)), kind, ()), aside, at)
            rows = rows.select(*own)
        return transformed(rows, named, version or str(named.uid), kind, own)
    trained = _trained_elsewhere(model, at)
    is_yes_or_no = kind.typeName() == "boolean"
    fixed = TrainedElsewhere(trained, tuple(features), version or _called(trained), is_yes_or_no)
    return scored(Chosen(rows, fixed, kind, ()), aside, at)


def _trained_elsewhere(model: object, at: Location) -> Any:
    """Return a model that was trained elsewhere; of files only ONNX, since pickles run code.

    Raises:
        DeclarationError: It is none.
    """
    if isinstance(model, str | PathLike):
        path = fspath(model)
        if not path.endswith(SUFFIX):
            why = f"{path!r} is no model: of files only *{SUFFIX} is read, since a pickle runs code"
            raise refused(at, why)
        return OnnxModel.read(path, at)
    _check_is_model(model, at)
    return model


def _check_is_model(model: object, at: Location) -> None:
    known = callable(model) or isinstance(model, str | PathLike)
    if not known and not any(hasattr(model, method) for method in ("predict", "predict_one")):
        raise refused(at, f"{described(model)} is no model")


def _called(model: Any) -> str:
    """Name a model that nobody has named: by what it is, and its content if that is known."""
    if isinstance(model, OnnxModel):
        return f"onnx {model.digest[:_DIGITS]}"
    if hasattr(model, "predict") or hasattr(model, "predict_one"):
        return f"{type(model).__name__} {digest_of(canonical_bytes(model))[:_DIGITS]}"
    return str(getattr(model, "__name__", type(model).__name__))


def refused(at: Location, why: str) -> Exception:
    """Refuse to score."""
    return fault("SCORE_REFUSED", at=at, why=why)


@dataclass(frozen=True, slots=True)
class Chosen:
    """How a model comes to rows."""

    rows: DataFrame
    """With the columns below beside their own, if each row brings its model."""
    recipe: ScoringModel
    type: DataType
    """Of predictions."""
    columns: tuple[str, ...]


def _check_columns(columns: Sequence[str], features: Sequence[str], at: Location) -> None:
    """Check that rows have the features, and nothing that is added.

    Raises:
        DeclarationError: They lack one, or have it already.
    """
    for name in features:
        if name not in columns:
            raise refused(at, f"the rows lack the feature {name!r}")
    for name in _OWN:
        if name in columns:
            raise refused(at, f"the rows have a column {name!r} already")


def scored(chosen: Chosen, aside: Aside, at: Location) -> DataFrame:
    """Add what a model says of rows; the event time stays what it is."""
    import pyarrow as pa
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import BooleanType, DoubleType, StringType, StructType

    from millstream.operators.columns import quoted
    from millstream.spark.session import share_python

    rows, model, brought = chosen.rows, chosen.recipe, chosen.columns
    own = [name for name in rows.columns if name not in brought]
    _check_columns(own, model.features, at)
    result = StructType()
    if aside.tolerates:
        result = result.add(IS_RIGHT, BooleanType())
    result = result.add("prediction", chosen.type).add("score", DoubleType())
    result = result.add(VERSION, StringType())
    kind = pa.struct(list(to_arrow_schema(result)))
    scoring = Scoring(model, kind, chosen.type.typeName(), aside)

    def run(batches: Iterator[pa.StructArray]) -> Iterator[pa.StructArray]:
        return scoring(batches)

    share_python(rows.sparkSession)
    # By these types Spark calls it once for all batches of a task.
    run.__annotations__ = dict.fromkeys(("batches", "return"), Iterator[pa.Array])  # type: ignore[type-arg]
    functions: Any = F
    # Not deterministic to Spark, so that it computes it once.
    scores: Callable[..., Column] = functions.arrow_udf(run, result).asNondeterministic()
    # The quarantine gets whole rows.
    given = F.struct(*map(quoted, (*(own if aside.tolerates else model.features), *brought)))
    found = rows.withColumn(_SCORED, scores(given))
    if aside.tolerates:
        found = found.where(F.col(f"{_SCORED}.{IS_RIGHT}"))
    said = (F.col(_SCORED)[name].alias(name) for name in _OWN)
    return found.select(*map(quoted, own), *said)


def _type(rows: DataFrame, text: str) -> DataType:
    schema: StructType = rows.sparkSession.createDataFrame([], f"prediction {text}").schema
    return schema["prediction"].dataType
