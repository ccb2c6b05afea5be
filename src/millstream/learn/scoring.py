"""Scoring in the tasks of Spark, in batches of Arrow, with one model or one of each row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from millstream.errors import MillstreamError
from millstream.learn.learner import PartialFit, Predictor, Task, as_label
from millstream.learn.learning import why_not
from millstream.learn.onnx import OnnxModel
from millstream.learn.pickled import check_digest, read_model
from millstream.learn.taught import Taught, predicted_by
from millstream.operators.build_context import build_context
from millstream.operators.state.calls import trace_of
from millstream.operators.state.raised_rows import RaisedRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd
    import pyarrow as pa

    from millstream.errors import Location

CALL = "ms.score"
IS_RIGHT = "is_right"
"""The field that says whether a row was scored."""


class _Parts(NamedTuple):
    """The columns in which a version comes to the rows that it scores."""

    version: str
    bytes: str
    library: str
    digest: str


PARTS = _Parts(*(f"_millstream_{name}" for name in _Parts._fields))
"""Names that no column of a user has."""


class ScoringModel(Protocol):
    """Scores rows that have its features."""

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that it predicts from."""
        ...

    def score(self, rows: pd.DataFrame) -> Scores:
        """Score the rows of a batch of Arrow."""
        ...


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
    is_yes_or_no: bool = False

    def score(self, rows: pd.DataFrame) -> Scores:
        """Score the rows of a batch of Arrow."""
        found = Scores.none(len(rows))
        some = rows[_right(rows, self.features)].infer_objects()
        if len(some):
            predictions, scores = self._predicted(some[list(self.features)])
            for place, prediction, score in zip(some.index, predictions, scores, strict=True):
                value = prediction.item() if hasattr(prediction, "item") else prediction
                found.put(place, value, score, self.version)
        return found

    def _predicted(self, rows: pd.DataFrame) -> tuple[Any, Sequence[float | None]]:
        if isinstance(self.model, OnnxModel):
            return self.model.predict(rows, is_yes_or_no=self.is_yes_or_no)
        return self._alone(rows), [None] * len(rows)

    def _alone(self, rows: pd.DataFrame) -> Any:
        return predicted_by(self.model, rows)


@dataclass(frozen=True, slots=True)
class FeaturesAlone:
    """Says nothing of rows: whether they have their features is judged alone."""

    features: tuple[str, ...]

    def score(self, rows: pd.DataFrame) -> Scores:
        """Say nothing."""
        return Scores.none(len(rows))


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
    if isinstance(learner, Taught):
        return learner.scores(rows)
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


@dataclass(frozen=True, slots=True)
class Aside:
    """What becomes of rows that a model raises on."""

    tolerates: bool = False
    folder: str | None = None
    """Where they are written for the quarantine."""

    @staticmethod
    def of(on_error: str) -> Aside:
        """Return where rows go; a query without a quarantine stops."""
        context = build_context()
        if on_error == "raise" or context is None or context.options.stops_if_raised:
            return Aside()
        return Aside(tolerates=True, folder=context.note_raising(CALL))


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores batches of Arrow, in a task."""

    model: ScoringModel
    type: pa.StructType
    """Of what is said of a row; with `is_right` first, if rows are quarantined."""
    label: str
    """The type of predictions, as Spark names it."""
    aside: Aside = Aside()

    def __call__(self, batches: Iterator[pa.StructArray]) -> Iterator[pa.StructArray]:
        """Score the rows of a task; at its end, write those that cannot be."""
        from pyspark import TaskContext

        from millstream.operators.state.raised_rows import write_raised_rows

        raised: list[RaisedRow] = []
        for batch in batches:
            yield self.scored(batch, raised)
        context = TaskContext.get()
        if raised and self.aside.folder and context is not None:
            write_raised_rows(self.aside.folder, f"scored-{context.partitionId()}", raised)

    def scored(self, batch: pa.StructArray, raised: list[RaisedRow]) -> pa.StructArray:
        """Score a batch; add the rows that cannot be."""
        import pyarrow as pa

        rows = pa.Table.from_batches([pa.RecordBatch.from_struct_array(batch)])
        frame = rows.to_pandas(integer_object_nulls=True)
        if not self.aside.tolerates:
            return self._packed(self.model.score(frame))
        refused = self._without_features(frame, batch)
        try:
            packed = self._packed(self.model.score(frame), refused)
        except (ModuleNotFoundError, MemoryError, MillstreamError):
            raise  # it is not a row's fault
        except Exception:
            packed = self._one_by_one(frame, refused)
        for place, why in refused.items():
            row: Any = batch[place].as_py()
            own = {name: value for name, value in row.items() if name not in PARTS}
            text = json.dumps(own, default=str, ensure_ascii=False)
            raised.append(RaisedRow(CALL, text, why if isinstance(why, str) else trace_of(why)))
        return packed

    def _without_features(
        self, frame: pd.DataFrame, batch: pa.StructArray
    ) -> dict[int, str | Exception]:
        """Say which feature a row lacks; pandas alone does not tell null from NaN."""
        wrong = frame.index[~_right(frame, self.model.features)]
        rows: dict[int, Any] = {int(place): batch[int(place)].as_py() for place in wrong}
        names = self.model.features
        return {place: why_not({n: row[n] for n in names}) for place, row in rows.items()}

    def _one_by_one(
        self, frame: pd.DataFrame, refused: dict[int, str | Exception]
    ) -> pa.StructArray:
        found = Scores.none(len(frame))
        for place in range(len(frame)):
            if place in refused:
                continue
            try:
                alone = self.model.score(frame.iloc[[place]].reset_index(drop=True))
                self._packed(alone, {})
            except (ModuleNotFoundError, MemoryError, MillstreamError):
                raise
            except Exception as error:
                refused[place] = error
            else:
                found.put(place, alone.predictions[0], alone.scores[0], alone.versions[0])
        return self._packed(found, refused)

    def _packed(
        self, found: Scores, refused: Mapping[int, str | Exception] | None = None
    ) -> pa.StructArray:
        import pyarrow as pa

        labels = [as_label(prediction, self.label) for prediction in found.predictions]
        columns: list[Any] = [labels, found.scores, found.versions]
        if refused is not None:
            columns.insert(0, [place not in refused for place in range(len(labels))])
        pairs = zip(columns, self.type, strict=True)
        arrays: list[Any] = [pa.array(column, kind.type) for column, kind in pairs]
        return pa.StructArray.from_arrays(arrays, fields=list(self.type))
