"""Learners: what they predict, how a row is scored before it is learnt, and what is measured."""

from __future__ import annotations

import copy
import math
import re
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from inspect import isfunction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Task(Enum):
    """What a model predicts."""

    CLASS = "class"
    NUMBER = "number"
    CLUSTER = "cluster"
    ANOMALY = "anomaly"


class Scored(NamedTuple):
    """What a model says of a row."""

    prediction: Any
    """None if it has learnt too little."""
    score: float | None
    """A probability, or how unusual the row is."""
    chances: Mapping[Any, float] | None = None
    """The probability of each class."""


class PartialFit:
    """An estimator of scikit-learn, which learns row by row."""

    def __init__(self, estimator: Any, classes: Sequence[Any]) -> None:
        self.estimator, self.classes = estimator, list(classes)
        self.has_learnt = False

    @property
    def is_of_sklearn(self) -> bool:
        """Whether scikit-learn knows what it predicts."""
        return any(kind.__module__.startswith("sklearn.") for kind in type(self.estimator).__mro__)

    def learn_one(self, x: Mapping[str, Any], y: Any = None) -> None:
        """Learn a row."""
        rows = [[*x.values()]]
        if y is None:
            self.estimator.partial_fit(rows)
        elif self.classes and not self.has_learnt:
            self.estimator.partial_fit(rows, [y], classes=self.classes)
        else:
            self.estimator.partial_fit(rows, [y])
        self.has_learnt = True

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """Predict the label of a row; None before anything is learnt."""
        if not self.has_learnt:
            return None
        return self.estimator.predict([[*x.values()]])[0].item()

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Predict the probability of each class."""
        if not self.has_learnt:
            return {}
        found = self.estimator.predict_proba([[*x.values()]])[0]
        return dict(zip(self.estimator.classes_.tolist(), found.tolist(), strict=True))


def new_learner(make: Callable[[], Any], classes: Sequence[Any]) -> Any:
    """Make a learner that has learnt nothing."""
    made = make()
    return PartialFit(made, classes) if hasattr(made, "partial_fit") else made


def task_of(learner: Any, *, has_label: bool, is_number: bool) -> Task:
    """Return what a learner predicts."""
    if isinstance(known := getattr(learner, "task", None), Task):
        return known
    if type(learner).__module__.startswith("river."):
        from river import base

        kinds = (
            (base.AnomalyDetector, Task.ANOMALY),
            (base.Classifier, Task.CLASS),
            (base.Regressor, Task.NUMBER),
            (base.Clusterer, Task.CLUSTER),
        )
        return next((task for kind, task in kinds if isinstance(learner, kind)), Task.CLASS)
    if has_label and isinstance(learner, PartialFit) and learner.is_of_sklearn:
        from sklearn.base import RegressorMixin

        return Task.NUMBER if isinstance(learner.estimator, RegressorMixin) else Task.CLASS
    if not has_label:
        return Task.CLUSTER if hasattr(learner, "predict_one") else Task.ANOMALY
    return Task.NUMBER if is_number else Task.CLASS


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a model predicts, from what, and how it is measured."""

    make: Callable[[], Any] = field(repr=False)
    """Makes an estimator that has learnt nothing."""
    features: tuple[str, ...]
    label: str | None
    classes: tuple[Any, ...]
    """The labels there are; empty if any may come."""
    task: Task
    is_yes_or_no: bool
    """Whether the label is a BOOLEAN."""
    metrics: tuple[Any, ...]
    window: int
    """How many of the last rows are measured, beside all."""
    drift: Any = None
    """A detector of River's, as it begins; None if nothing looks for drift."""

    def new(self) -> Any:
        """Make a learner that has learnt nothing."""
        return new_learner(self.make, self.classes)

    def facts(self) -> dict[str, str]:
        """Describe what a model that has learnt goes by: another would not continue it."""
        measured = (type(metric).__name__ for metric in self.metrics)
        return {
            "the learner": _described(self.new()),
            "the label": str(self.label),
            "the features": ", ".join(self.features),
            "what is measured": f"{', '.join(measured)}, and over {self.window} rows",
            "the detector of drift": _described(self.drift),
        }

    def measured(self) -> Measured:
        """Begin to measure."""
        is_distance = self.task is Task.NUMBER
        return Measured(
            self.metrics, self.window, copy.deepcopy(self.drift), is_distance=is_distance
        )


@dataclass(frozen=True, slots=True)
class Predictor:
    """Scores rows with a learner, by what it predicts."""

    learner: Any
    task: Task
    is_yes_or_no: bool
    argmax_is_enough: bool = field(init=False)
    """Whether the prediction is the class of the greatest probability, by River's own code."""
    takes_labels: bool = field(init=False)
    """Whether it learns from labels."""

    def __post_init__(self) -> None:
        # Asked for each row; a pipeline of River's looks through its steps for it.
        last: Any = type(getattr(self.learner, "_last_step", self.learner))
        object.__setattr__(self, "argmax_is_enough", _takes_the_likeliest(last))
        labels = bool(getattr(self.learner, "_supervised", True))
        object.__setattr__(self, "takes_labels", labels)

    def learn(self, x: Mapping[str, Any], y: Any) -> None:
        """Have a row learnt."""
        if y is None or not self.takes_labels:
            self.learner.learn_one(x)
        else:
            self.learner.learn_one(x, y)

    def __call__(self, x: Mapping[str, Any]) -> Scored:
        """Score a row."""
        if self.task is Task.ANOMALY:
            score = self.learner.score_one(x)
            return Scored(score, score)
        if self.task is not Task.CLASS:
            return Scored(self.learner.predict_one(x), None)
        chances = self._chances(x)
        if chances and self.argmax_is_enough:
            prediction = max(chances, key=chances.__getitem__)
        else:
            prediction = self.learner.predict_one(x)
        asked = True if self.is_yes_or_no else prediction
        score = chances.get(asked) if chances else None
        return Scored(prediction, score, chances)

    def _chances(self, x: Mapping[str, Any]) -> Mapping[Any, float] | None:
        try:
            found: Mapping[Any, float] = self.learner.predict_proba_one(x)
        except (AttributeError, NotImplementedError):
            return None
        return found


def _described(part: Any) -> str:
    """Describe a learner by its kind and parameters, alike in every process."""
    made = getattr(part, "estimator", part)
    if type(made).__module__.startswith("millstream.") or made is None:
        return repr(made)
    if isfunction(made):
        return made.__qualname__
    if not type(made).__module__.startswith(("river.", "sklearn.")):
        return type(made).__qualname__
    text = re.sub(r"\s+", " ", re.sub(r" at 0x\w+", "", repr(made))).strip()
    name = type(made).__qualname__
    return text if text.startswith(name) else f"{name} {text}"


@cache
def _takes_the_likeliest(learner: Any) -> bool:
    if not learner.__module__.startswith("river."):
        return False
    from river import base

    return getattr(learner, "predict_one", None) is base.Classifier.predict_one


def as_label(prediction: Any, kind: str) -> Any:
    """Return a prediction as a label of a type of Spark: yes is 1 among numbers.

    River's linear classifiers predict true and false, whatever the labels are.
    """
    if not isinstance(prediction, bool) or kind == "boolean":
        return prediction
    return str(prediction).lower() if kind == "string" else int(prediction)


def default_metrics(task: Task) -> tuple[Any, ...]:
    """Return what is measured if nothing is declared.

    Raises:
        EXTRA_MISSING: River, which has the metrics, is not installed.
    """
    try:
        from river import metrics
    except ModuleNotFoundError as error:
        raise fault(
            "EXTRA_MISSING", what="@app.model", module=str(error.name), extra="learn"
        ) from error
    usual = {Task.CLASS: ("Accuracy",), Task.NUMBER: ("MAE", "RMSE")}
    return tuple(getattr(metrics, name)() for name in usual.get(task, ()))


class Measured:
    """Metrics over all rows and over the last ones, each row scored before it was learnt."""

    def __init__(
        self,
        metrics: Sequence[Any],
        window: int,
        drift: Any = None,
        *,
        is_distance: bool = False,
    ) -> None:
        self.overall = [metric.clone() for metric in metrics]
        self.window, self.drift, self.is_distance = window, drift, is_distance
        self.needs_chances = not all(getattr(metric, "requires_labels", True) for metric in metrics)
        self.last: deque[tuple[Any, Any, Any]] = deque()

    def update(self, y: Any, scored: Scored) -> bool:
        """Measure a row; return whether the model drifts with it."""
        if scored.prediction is None:
            return False
        row = (y, scored.prediction, scored.chances if self.needs_chances else None)
        if len(self.last) == self.window:
            self.last.popleft()
        self.last.append(row)
        for metric in self.overall:
            metric.update(y, _said(metric, row))
        return self._drifts(y, scored.prediction)

    @property
    def recent(self) -> list[Any]:
        """The metrics over the last rows."""
        # A row that is reverted leaves what was rounded: an RMSE may become that of less than 0.
        made = [metric.clone() for metric in self.overall]
        for metric, row in product(made, self.last):
            metric.update(row[0], _said(metric, row))
        return made

    def _drifts(self, y: Any, prediction: Any) -> bool:
        if self.drift is None:
            return False
        is_far = abs(float(y) - float(prediction)) if self.is_distance else int(y != prediction)
        self.drift.update(is_far)
        return bool(self.drift.drift_detected)

    def values(self, metrics: Sequence[Any]) -> dict[str, float | None]:
        """Return the value of each metric by its name."""
        return {type(metric).__name__: _number(metric.get()) for metric in metrics}


def _said(metric: Any, row: tuple[Any, Any, Any]) -> Any:
    return row[1] if row[2] is None or metric.requires_labels else row[2]


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
