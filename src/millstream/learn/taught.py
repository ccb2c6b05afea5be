"""A model that learns slices of rows at once, with what was measured of it so far."""

from __future__ import annotations

import copy
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.learn.exact import added, exact_sum
from millstream.learn.learner import Task
from millstream.learn.merging import is_merging

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from fractions import Fraction

    import pandas as pd

    from millstream.learn.exact import Sums

ROWS, ABSOLUTE, SQUARED, SAID = "rows", "absolute", "squared", "said"
"""The names of sums: of rows, of errors and their squares, and of labels by prediction."""
LEARNER = "learner"


@dataclass(frozen=True, slots=True)
class Taught:
    """A model after some slices."""

    model: Any
    """None before a function has made one."""
    said: Mapping[Any, float]
    """The sums of errors of all rows."""
    recent: tuple[Mapping[Any, float], ...] = ()
    """Those of the last slices."""

    def scores(self, x: pd.DataFrame) -> tuple[Sequence[Any], Sequence[Any]]:
        """Predict for many rows."""
        nothing = [None] * len(x)
        if self.model is None or not len(x):
            return nothing, nothing
        if is_merging(self.model):
            found: tuple[Sequence[Any], Sequence[Any]] = self.model.scores(x)
            return found
        return [_plain(one) for one in predicted_by(self.model, x)], nothing

    def sums(self, x: pd.DataFrame, y: Sequence[Any] | None, task: Task) -> Sums:
        """Sum up rows that are to be learnt, and how wrong the predictions for them are."""
        found: Sums = {(ROWS,): (float(len(x)),)}
        if not len(x):
            return {}
        if y is not None:
            found |= _errors(y, self.scores(x)[0], task)
        if is_merging(self.model):
            learnt = self.model.sums(x, y or ())
            found |= {(LEARNER, name): sums for name, sums in learnt.items()}
        return found

    def after(self, model: Any, totals: Mapping[Any, Fraction], window: int) -> Taught:
        """Return the model after a slice, whose errors are among the totals."""
        errors = {name: total for name, total in totals.items() if name[0] != LEARNER}
        kept, count = [added({}, errors)], float(totals[(ROWS,)])
        for one in reversed(self.recent):
            if count >= window:
                break
            kept.append(one)
            count += one[(ROWS,)]
        return Taught(model, added(self.said, errors), tuple(reversed(kept)))

    def measured(self, metrics: Iterable[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return metrics over all rows, and over the last slices."""
        last: Counter[Any] = Counter()
        for one in self.recent:
            last.update(one)
        metrics = tuple(metrics)
        return _values(metrics, self.said), _values(metrics, last)


def predicted_by(model: Any, rows: pd.DataFrame) -> Any:
    """Return what a model that was trained anywhere predicts for rows."""
    if hasattr(model, "predict"):
        return model.predict(rows.to_numpy())
    if hasattr(model, "predict_one"):
        return [model.predict_one(x) for x in rows.to_dict("records")]
    return model(rows)


def _plain(prediction: Any) -> Any:
    return prediction.item() if hasattr(prediction, "item") else prediction


def _errors(y: Sequence[Any], predictions: Sequence[Any], task: Task) -> Sums:
    known = [(a, b) for a, b in zip(y, predictions, strict=True) if b is not None]
    if task is not Task.NUMBER:
        return {(SAID, a, b): (float(n),) for (a, b), n in Counter(known).items()}
    far = [float(a) - float(b) for a, b in known]
    sums = {ABSOLUTE: exact_sum(map(abs, far)), SQUARED: exact_sum(one * one for one in far)}
    return {(SAID,): (float(len(far)),), **{(name,): parts for name, parts in sums.items()}}


def _usual(said: Mapping[Any, float]) -> dict[str, Any]:
    if count := said.get((SAID,), 0.0):
        squared = said[(SQUARED,)] / count
        return {"MAE": said[(ABSOLUTE,)] / count, "RMSE": math.sqrt(squared)}
    counts = {name: n for name, n in said.items() if name[0] == SAID and len(name) > 1}
    right = sum(n for name, n in counts.items() if name[1] == name[2])
    return {"Accuracy": right / sum(counts.values())} if counts else {}


def _values(metrics: Sequence[Any], said: Mapping[Any, float]) -> dict[str, Any]:
    """Give each metric what was said: labels by prediction, or the mean error of all rows.

    Without any, what is usual, for which River need not be installed.
    """
    found: dict[str, Any] = {} if metrics else _usual(said)
    for one in metrics:
        metric = one.clone() if hasattr(one, "clone") else copy.deepcopy(one)
        for name in sorted((n for n in said if n[0] == SAID and len(n) > 1), key=repr):
            metric.update(name[1], name[2], w=said[name])
        if count := said.get((SAID,), 0.0):
            is_squared = type(one).__name__ in ("MSE", "RMSE")
            total = said[(SQUARED if is_squared else ABSOLUTE,)]
            mean = total / count
            metric.update(math.sqrt(mean) if is_squared else mean, 0.0, w=count)
        value = float(metric.get())
        found[type(one).__name__] = value if math.isfinite(value) else None
    return found
