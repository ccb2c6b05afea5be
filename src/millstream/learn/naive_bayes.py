"""Naive Bayes, of counts and sums."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from millstream.learn.exact import exact_sum
from millstream.learn.learner import Task
from millstream.learn.merging import is_text, numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    import pandas as pd

    from millstream.learn.exact import Sums
    from millstream.learn.merging import Numbers, Slice


@dataclass(frozen=True, slots=True)
class NaiveBayes:
    """Naive Bayes: classes by the distribution of each feature alone.

    Numbers are taken as normally distributed in each class; of BOOLEAN and STRING, values are
    counted. What was learnt is never forgotten.
    """

    task: ClassVar = Task.CLASS
    takes_text: ClassVar = True

    smoothing: float = 1.0
    """How often each value of a text is taken to have come before any did."""
    known: Mapping[Any, Any] = field(default_factory=dict, repr=False)
    """By class: how many rows; by class and number: how many, mean and sum of squares around it;
    by class, text and value: how many."""

    def sums(self, x: pd.DataFrame, y: Sequence[Any]) -> Sums:
        """Sum up the rows of each class."""
        import pandas as pd

        found: Sums = {}
        labels = pd.Series(y, index=x.index, dtype=object)
        for label, rows in x.groupby(labels, sort=False):
            found[(label,)] = (float(len(rows)),)
            for name in rows:
                if is_text(rows[name]):
                    for value, count in Counter(rows[name].tolist()).items():
                        found[(label, name, "=", value)] = (float(count),)
                else:
                    numbers = numbers_of(rows[name])
                    found[(label, name, 1)] = exact_sum(numbers.tolist())
                    found[(label, name, 2)] = exact_sum(_squares(numbers))
        return found

    def after(self, totals: Mapping[Any, Fraction], rows: Slice) -> Self:  # noqa: ARG002
        """Count rows and values, and merge means and squares."""
        known = dict(self.known)
        for name, total in totals.items():
            match name:
                case (label, feature, 1):
                    count, squares = totals[(label,)], totals[(label, feature, 2)]
                    new = (float(count), float(total / count), float(squares - total**2 / count))
                    at = (label, feature)
                    known[at] = _moments(known[at], new) if at in known else new
                case (_,) | (_, _, "=", _):
                    known[name] = known.get(name, 0.0) + float(total)
        return replace(self, known=known)

    def scores(self, x: pd.DataFrame) -> tuple[Sequence[Any], Sequence[float | None]]:
        """Return the likeliest class of each row, and its probability."""
        import numpy as np

        labels = sorted((name[0] for name in self.known if len(name) == 1), key=repr)
        if not labels:
            return [None] * len(x), [None] * len(x)
        logs = np.stack([self._logs(label, x) for label in labels])
        best = logs.argmax(axis=0)
        chances = np.exp(logs - logs.max(axis=0))
        asked = labels.index(True) if labels == [False, True] else best
        found = chances[asked, np.arange(len(x))] / chances.sum(axis=0)
        return [labels[place] for place in best.tolist()], found.tolist()

    def _logs(self, label: Any, x: pd.DataFrame) -> Numbers:
        """Return the logarithm of how likely each row is with a class, but for a constant."""
        import numpy as np

        rows = self.known[(label,)]
        logs: Numbers = np.full(len(x), math.log(rows))
        for name in x:
            if is_text(x[name]):
                values = {one[3] for one in self.known if len(one) == 4 and one[1] == name}
                smooth = self.smoothing
                among = rows + smooth * max(len(values), 1)
                known = {v: self.known.get((label, name, "=", v), 0.0) for v in values}
                chance = {v: math.log((known[v] + smooth) / among) for v in values}
                never = math.log(smooth / among)
                logs += np.array([chance.get(value, never) for value in x[name].tolist()])
            else:
                count, mean, squares = self.known[(label, name)]
                variance = max(squares / max(count - 1, 1), 1e-9 * max(1.0, mean * mean))
                logs -= 0.5 * math.log(variance) + (numbers_of(x[name]) - mean) ** 2 / (
                    2 * variance
                )
        return logs


def _squares(numbers: Numbers) -> list[float]:
    """Return numbers that add up to the sum of squares, without error (Dekker's product)."""
    split = numbers * 134_217_729.0
    high = split - (split - numbers)
    low, square = numbers - high, numbers * numbers
    error = low * low - ((square - high * high) - 2 * high * low)
    return [*square.tolist(), *error.tolist()]


def _moments(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Merge counts, means and sums of squares around them."""
    count, apart = one[0] + other[0], other[1] - one[1]
    mean = one[1] + apart * other[0] / count
    return count, mean, one[2] + other[2] + apart * apart * one[0] * other[0] / count
