"""River's bundled data sets as rows in the order of time, and River's own loop over them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from river import (
    anomaly,
    cluster,
    datasets,
    drift,
    ensemble,
    evaluate,
    linear_model,
    metrics,
    naive_bayes,
    preprocessing,
    tree,
)

from millstream.errors import Location
from millstream.learn.learner import Recipe, default_metrics, task_of
from millstream.learn.learning import STATE, Learning
from millstream.model.data_type import Field
from millstream.model.schema import Schema
from millstream.model.state import KeyedState
from millstream.operators.state.rows import KeyedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND_US = 1_000_000
AT = Location("app.py", 1)


@dataclass(frozen=True)
class Lesson:
    """A learner, and what it learns from."""

    name: str
    make: Callable[[], Any]
    data: Callable[[], Any]
    metric: Callable[[], Any]
    most: int = 5300
    is_exact: bool = True
    """Whether equal learners do equal sums: one that goes through a set of texts does not."""

    def rows(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """Read the data; a name of a feature is one in Python."""
        for x, y in islice(self.data(), self.most):
            yield {_name(name): value for name, value in x.items()}, y

    def river(self) -> float:
        """Return what River's own loop finds."""
        rows: Any = self.rows()
        return float(evaluate.progressive_val_score(rows, self.make(), self.metric()).get())


def _name(feature: str) -> str:
    return f"x{feature}" if feature[0].isdigit() else feature.replace("-", "_")


def _scaled(last: Any) -> Any:
    return preprocessing.StandardScaler() | last


def _bayes() -> Any:
    return naive_bayes.GaussianNB()  # type: ignore[no-untyped-call]


LESSONS = (
    Lesson(
        "logistic",
        lambda: _scaled(linear_model.LogisticRegression()),
        datasets.Phishing,
        metrics.ROCAUC,
    ),
    Lesson("bayes", naive_bayes.GaussianNB, datasets.Bananas, metrics.Accuracy, 2000),
    Lesson("tree", tree.HoeffdingTreeClassifier, datasets.Bananas, metrics.F1),
    Lesson(
        "random tree",
        lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
        datasets.Bananas,
        metrics.Accuracy,
        700,
    ),
    Lesson("bayes of seven", naive_bayes.GaussianNB, datasets.ImageSegments, metrics.MacroF1, 700),
    Lesson(
        "adaptive tree",
        lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
        datasets.ImageSegments,
        metrics.Accuracy,
        700,
        is_exact=False,
    ),
    Lesson(
        "linear",
        lambda: _scaled(linear_model.LinearRegression()),
        datasets.TrumpApproval,
        metrics.MAE,
    ),
    Lesson("perceptron", linear_model.Perceptron, datasets.Phishing, metrics.Accuracy),
    Lesson(
        "bagging",
        lambda: ensemble.ADWINBaggingClassifier(_bayes(), n_models=3, seed=7),
        datasets.Phishing,
        metrics.LogLoss,
        300,
    ),
    Lesson(
        "drift",
        lambda: drift.DriftRetrainingClassifier(_bayes(), drift.binary.DDM()),
        datasets.Phishing,
        metrics.Accuracy,
        400,
    ),
)
UNSUPERVISED = (
    Lesson("kmeans", lambda: cluster.KMeans(n_clusters=3, seed=1), datasets.Bananas, metrics.MAE),
    Lesson("half space", lambda: anomaly.HalfSpaceTrees(seed=1), datasets.Phishing, metrics.MAE),
)


def learning_of(
    lesson: Lesson, *, labelled: bool = True, classes: tuple[Any, ...] = (), every_s: int = 100
) -> Learning:
    """Return a model that learns a lesson, without Spark."""
    x, y = next(lesson.rows())
    task = task_of(lesson.make(), has_label=labelled, is_number=isinstance(y, float))
    recipe = Recipe(
        lesson.make,
        tuple(x),
        "y" if labelled else None,
        classes,
        task,
        isinstance(y, bool),
        (lesson.metric(), *default_metrics(task)) if labelled else (),
        50,
    )
    kinds = {bool: "BOOLEAN", int: "DOUBLE", float: "DOUBLE", str: "STRING"}
    typed = [f"{name} {kinds[type(value)]}" for name, value in {**x, "y": y}.items()]
    columns = Schema.parse(", ".join(["at TIMESTAMP", *typed]))
    of = Schema((Field("of", Schema.parse("a STRING").fields[0].type),))
    declared = KeyedState(lesson.name, ("of",), Schema.parse(STATE), Schema(()), AT)
    keyed = KeyedRows(of, columns, streams=True, tolerates=True, keeps_time=True)
    return Learning(recipe, declared, keyed, every_s * SECOND_US)


def arrivals(lesson: Lesson) -> list[tuple[int, str]]:
    """Return the rows as texts, one a second."""
    texts = []
    for number, (x, y) in enumerate(lesson.rows()):
        at = BEGIN + timedelta(seconds=number)
        us = int(at.timestamp()) * SECOND_US
        texts.append((us, json.dumps({"at": at.isoformat(), **x, "y": y})))
    return texts
