"""Scoring rows with a model: a version of one that learns, or one that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.declare.dataset import described
from millstream.declare.function import location_of_caller
from millstream.errors import Location, fault
from millstream.learn.learner import PartialFit, Predictor, Task, as_label
from millstream.learn.pickled import check_digest, read_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

VERSION = "version"
"""The column that says which version scored a row."""
_OWN = ("prediction", "score", VERSION)


class _Parts(NamedTuple):
    """The columns in which a version comes to the rows that it scores."""

    version: str
    bytes: str
    library: str
    digest: str


PARTS = _Parts(*(f"_millstream_{name}" for name in _Parts._fields))
"""Names that no column of a user has."""
_SCORED = "_scored"


def score(
    rows: DataFrame,
    model: object,
    *,
    version: str | None = None,
    features: Sequence[str] = (),
    returns: str = "DOUBLE",
) -> DataFrame:
    """Return rows with `prediction`, `score` and the `version` that scored them.

    A model that the function reads is used in its newest version, and in a stream in the newest
    one when a batch begins; a batch that is retried uses the same again. Before there is a
    version, and for rows whose features are null, all three are null.

    Args:
        rows: Of a stream or of a batch, with the features of the model.
        model: A model of the app, as the function gets it; or one that was trained elsewhere: an
            estimator of scikit-learn or River, or a function of a pandas DataFrame of the features
            that returns one prediction for each row.
        version: The version that is always used, such as `"2026-01-01 12:00"`.
        features: What a model that was trained elsewhere predicts from.
        returns: The type of what it predicts.

    Raises:
        DeclarationError: It is no model, or the rows lack its features.
    """
    from pyspark.sql import DataFrame

    at = location_of_caller()
    if isinstance(model, DataFrame):
        from millstream.learn.versions import with_versions

        chosen = with_versions(rows, model, version, at)
        return _scored(chosen.rows, chosen.recipe, chosen.type, chosen.columns, at)
    for method in ("predict", "predict_one"):
        if hasattr(model, method):
            break
    else:
        if not callable(model):
            raise refused(at, f"{described(model)} is no model")
    if not features:
        raise refused(at, "the features of a model that was trained elsewhere are not known")
    fixed = TrainedElsewhere(model, tuple(features), version or "")
    return _scored(rows, fixed, _type(rows, returns), (), at)


def refused(at: Location, why: str) -> Exception:
    """Refuse to score."""
    return fault("SCORE_REFUSED", at=at, why=why)


@dataclass(frozen=True, slots=True)
class Chosen:
    """How the versions of a model come to rows."""

    rows: DataFrame
    """With the columns below beside their own, if each row brings its model."""
    recipe: Versioned
    type: DataType
    """Of predictions."""
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Versioned:
    """A model that learns, in one version for all rows, or in one that each row brings."""

    features: tuple[str, ...]
    task: Task
    is_yes_or_no: bool
    name: str
    at: Location
    fixed: tuple[str, bytes, str] | None = None
    """A version with its bytes and the library that made it; None if rows bring it."""

    def score(self, rows: pd.DataFrame) -> Scores:
        """Score the rows of a batch of Arrow."""
        found = Scores.none(len(rows))
        right = _right(rows, self.features)
        if self.fixed is not None:
            version, packed, library = self.fixed
            self._score(rows[right].infer_objects(), packed, library, found, [version] * len(rows))
        elif PARTS.version in rows:
            versions = rows[PARTS.version].tolist()
            brought = rows[right & rows[PARTS.bytes].notna()]
            for packed, some in brought.groupby(PARTS.bytes, sort=False):
                _, _, library, digest = some[list(PARTS)].iloc[0]
                check_digest(packed, digest, of=self.name, at=self.at)
                self._score(some.infer_objects(), packed, library, found, versions)
        return found

    def _score(
        self, rows: pd.DataFrame, packed: Any, library: str, found: Scores, versions: list[Any]
    ) -> None:
        learner = _read(packed, library or "", self.name, self.at)
        predictor = Predictor(learner, self.task, self.is_yes_or_no)
        predictions, scores = _scores_of(predictor, rows[list(self.features)])
        for place, prediction, score in zip(rows.index, predictions, scores, strict=True):
            found.put(place, prediction, score, versions[place])


@dataclass(frozen=True, slots=True)
class TrainedElsewhere:
    """A model that was trained elsewhere."""

    model: Any
    features: tuple[str, ...]
    version: str

    def score(self, rows: pd.DataFrame) -> Scores:
        """Score the rows of a batch of Arrow."""
        found = Scores.none(len(rows))
        some = rows[_right(rows, self.features)].infer_objects()
        if len(some):
            predictions = self._predicted(some[list(self.features)])
            for place, prediction in zip(some.index, predictions, strict=True):
                value = prediction.item() if hasattr(prediction, "item") else prediction
                found.put(place, value, None, self.version or None)
        return found

    def _predicted(self, rows: pd.DataFrame) -> Any:
        if hasattr(self.model, "predict"):
            return self.model.predict(rows.to_numpy())
        if hasattr(self.model, "predict_one"):
            return [self.model.predict_one(x) for x in rows.to_dict("records")]
        return self.model(rows)


@dataclass(frozen=True, slots=True)
class Scores:
    """What is said of the rows of a batch, in their order."""

    predictions: list[Any]
    scores: list[float | None]
    versions: list[str | None]

    @staticmethod
    def none(count: int) -> Scores:
        """Begin with nothing that is said."""
        return Scores([None] * count, [None] * count, [None] * count)

    def put(self, place: int, prediction: Any, score: float | None, version: str | None) -> None:
        """Set what is said of a row."""
        self.predictions[place], self.scores[place] = prediction, score
        self.versions[place] = version


def _right(rows: pd.DataFrame, features: Sequence[str]) -> pd.Series[bool]:
    """Say which rows have all features."""
    import numpy as np

    some = rows[list(features)]
    return ~(some.isna() | some.isin([np.inf, -np.inf])).any(axis="columns")


def _scores_of(predictor: Predictor, rows: pd.DataFrame) -> tuple[Sequence[Any], Sequence[Any]]:
    """Score rows that have all features: together where the learner can, else one by one."""
    learner, nothing = predictor.learner, [None] * len(rows)
    if rows.empty:
        return (), ()
    if isinstance(learner, PartialFit):
        return _by_matrix(predictor, learner, rows)
    if predictor.task is Task.NUMBER and _is_in_batches(learner):
        return learner.predict_many(rows).tolist(), nothing
    if predictor.task is Task.CLASS and predictor.argmax_is_enough and _is_in_batches(learner):
        chances = learner.predict_proba_many(rows)
        if len(chances.columns):
            return _likeliest(predictor, chances)
    found = [predictor(x) for x in rows.to_dict("records")]
    return [one.prediction for one in found], [one.score for one in found]


def _likeliest(predictor: Predictor, chances: pd.DataFrame) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the class of the greatest probability, and the probability that is asked for."""
    values = chances.to_numpy()
    predictions = chances.columns.to_numpy()[values.argmax(axis=1)].tolist()
    if predictor.is_yes_or_no and True in chances.columns:
        return predictions, chances[True].tolist()
    return predictions, values.max(axis=1).tolist()


def _by_matrix(
    predictor: Predictor, learner: PartialFit, rows: pd.DataFrame
) -> tuple[Sequence[Any], Sequence[Any]]:
    nothing = [None] * len(rows)
    if not learner.has_learnt:
        return nothing, nothing
    matrix = rows.to_numpy()
    predictions = learner.estimator.predict(matrix).tolist()
    if predictor.task is not Task.CLASS or not hasattr(learner.estimator, "predict_proba"):
        return predictions, nothing
    classes = learner.estimator.classes_.tolist()
    chances = learner.estimator.predict_proba(matrix).tolist()
    asked = [True] * len(rows) if predictor.is_yes_or_no else predictions
    paired = zip(chances, asked, strict=True)
    return predictions, [row[classes.index(name)] for row, name in paired]


def _is_in_batches(learner: Any) -> bool:
    """Whether a learner of River's scores many rows at once."""
    if not type(learner).__module__.startswith("river."):
        return False
    from river import base, compose

    parts = getattr(learner, "steps", None) or getattr(learner, "transformers", None)
    if parts is not None:
        return all(map(_is_in_batches, parts.values()))
    # A function of a row gets a DataFrame else.
    kinds = (base.MiniBatchClassifier, base.MiniBatchRegressor, base.MiniBatchTransformer)
    return isinstance(learner, kinds) and not isinstance(learner, compose.FuncTransformer)


@lru_cache(maxsize=64)
def _read(packed: bytes, library: str, name: str, at: Location) -> Any:
    return read_model(packed, library, of=name, at=at)


def scored_batch(
    model: Versioned | TrainedElsewhere, batch: pa.StructArray, kind: pa.StructType, label: str
) -> pa.StructArray:
    """Score a batch of Arrow.

    Args:
        model: Scores its rows.
        batch: The features of each row, and the version that it brings.
        kind: The type of what is said of a row.
        label: The type of predictions, as Spark names it.
    """
    import pyarrow as pa

    rows = pa.Table.from_batches([pa.RecordBatch.from_struct_array(batch)])
    found = model.score(rows.to_pandas(integer_object_nulls=True))
    labels = [as_label(prediction, label) for prediction in found.predictions]
    columns: tuple[Any, ...] = (labels, found.scores, found.versions)
    arrays: list[Any] = [pa.array(c, f.type) for c, f in zip(columns, kind, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _scored(
    rows: DataFrame,
    model: Versioned | TrainedElsewhere,
    predicted: DataType,
    brought: tuple[str, ...],
    at: Location,
) -> DataFrame:
    """Add what a model says of rows; the event time stays what it is."""
    import pyarrow as pa
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import DoubleType, StringType, StructType

    from millstream.operators.columns import quoted
    from millstream.spark.session import share_python

    own = [name for name in rows.columns if name not in brought]
    for name in model.features:
        if name not in own:
            raise refused(at, f"the rows lack the feature {name!r}")
    for name in _OWN:
        if name in own:
            raise refused(at, f"the rows have a column {name!r} already")
    result = StructType().add("prediction", predicted).add("score", DoubleType())
    result = result.add(VERSION, StringType())
    label_kind = predicted.typeName()
    kind = pa.struct(list(to_arrow_schema(result)))

    def run(batches: Iterator[pa.StructArray]) -> Iterator[pa.StructArray]:
        for batch in batches:
            yield scored_batch(model, batch, kind, label_kind)

    share_python(rows.sparkSession)
    # By these types Spark calls it once for all batches of a task.
    run.__annotations__ = dict.fromkeys(("batches", "return"), Iterator[pa.Array])  # type: ignore[type-arg]
    functions: Any = F
    # Not deterministic to Spark, so that it computes it once.
    scores: Callable[..., Column] = functions.arrow_udf(run, result).asNondeterministic()
    given = F.struct(*map(quoted, model.features), *(quoted(name) for name in brought))
    names = list(map(quoted, own))
    return rows.withColumn(_SCORED, scores(given)).select(
        *names, *(F.col(_SCORED)[name].alias(name) for name in result.names)
    )


def _type(rows: DataFrame, text: str) -> DataType:
    schema: StructType = rows.sparkSession.createDataFrame([], f"prediction {text}").schema
    return schema["prediction"].dataType
