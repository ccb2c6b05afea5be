"""Linear and logistic regression, of gradients and curvature."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from millstream.learn.exact import added, exact_sum
from millstream.learn.learner import Task
from millstream.learn.merging import is_text, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    import pandas as pd

    from millstream.learn.exact import Sums
    from millstream.learn.merging import HalfLife, Numbers, Slice


@dataclass(frozen=True, slots=True)
class LinearRegression:
    """Linear regression: the least squares of all rows that were learnt, with a penalty."""

    task: ClassVar = Task.NUMBER
    takes_text: ClassVar = True

    l2: float = 1.0
    """How much large weights are penalized."""
    half_life: HalfLife = None
    """After how many rows (`10_000`) or how much event time (`"1 day"`) a row counts half."""
    weights: Mapping[str, float] = field(default_factory=dict, repr=False)
    """Of each number, of each value of a text as `name=value`, and of 1, which has no name."""
    curvature: Mapping[tuple[str, str], float] = field(default_factory=dict, repr=False)
    """The sums of products of all pairs."""

    def sums(self, x: pd.DataFrame, y: Sequence[Any]) -> Sums:
        """Sum up the gradient at the weights, and the curvature."""
        import numpy as np

        columns = dict(sorted(_columns(x)))
        predicted = self._predicted(columns, len(x))
        error = np.array([float(one) for one in y]) - predicted
        steepness, found = self._steepness(predicted), dict[Any, tuple[float, ...]]()
        for name, column in columns.items():
            found[name] = exact_sum((column * error).tolist())
            some = np.flatnonzero(column)
            steep = steepness[some] * column[some]
            for other in columns:
                if name <= other:
                    found[(name, other)] = exact_sum((steep * columns[other][some]).tolist())
        return {name: sums for name, sums in found.items() if sums}

    def after(self, totals: Mapping[Any, Fraction], rows: Slice) -> Self:
        """Take one step of Newton's: with least squares it is the solution."""
        import numpy as np

        decay = rows.decay(self.half_life)
        before = {pair: value * decay for pair, value in self.curvature.items()}
        curvature = added(before, {n: t for n, t in totals.items() if isinstance(n, tuple)})
        names = sorted({name for pair in curvature for name in pair})
        place = {name: number for number, name in enumerate(names)}
        penalty = np.array([self.l2 if name else 1e-9 for name in names])
        matrix = np.diag(penalty)
        for (one, other), value in curvature.items():
            matrix[place[one], place[other]] += value
            if one != other:
                matrix[place[other], place[one]] += value
        old = np.array([self.weights.get(name, 0.0) for name in names])
        slope = np.array([float(totals.get(name, 0)) for name in names])
        # What was learnt balanced the penalty, and pulls less by now.
        slope -= (1 - decay) * penalty * old
        scale = 1 / np.sqrt(np.diag(matrix))
        step = scale * np.linalg.solve(scale[:, None] * matrix * scale, scale * slope)
        weights = dict(zip(names, (old + step).tolist(), strict=True))
        return replace(self, weights=weights, curvature=curvature)

    def scores(self, x: pd.DataFrame) -> tuple[Sequence[Any], Sequence[float | None]]:
        """Predict a number for each row."""
        if not self.weights:
            return [None] * len(x), [None] * len(x)
        return self._predicted(dict(_columns(x)), len(x)).tolist(), [None] * len(x)

    def _predicted(self, columns: Mapping[str, Numbers], count: int) -> Numbers:
        """Add up weights in a fixed order: a product of matrices depends on the other rows."""
        import numpy as np

        found = np.zeros(count)
        for name, column in sorted(columns.items()):
            if weight := self.weights.get(name, 0.0):
                found += weight * column
        return found

    def _steepness(self, predicted: Numbers) -> Numbers:
        import numpy as np

        return np.ones(len(predicted))


@dataclass(frozen=True, slots=True)
class LogisticRegression(LinearRegression):
    """Logistic regression of a label that is true or false, or 1 or 0."""

    task: ClassVar = Task.CLASS
    labels: ClassVar = (False, True)

    def scores(self, x: pd.DataFrame) -> tuple[Sequence[Any], Sequence[float | None]]:
        """Predict true or false for each row, with the probability of true."""
        if not self.weights:
            return [None] * len(x), [None] * len(x)
        chances = self._predicted(dict(_columns(x)), len(x))
        return (chances > 0.5).tolist(), chances.tolist()

    def _predicted(self, columns: Mapping[str, Numbers], count: int) -> Numbers:
        import numpy as np

        linear = LinearRegression._predicted(self, columns, count)
        return 1 / (1 + np.exp(-np.clip(linear, -500, 500)))

    def _steepness(self, predicted: Numbers) -> Numbers:
        return predicted * (1 - predicted)


def _columns(x: pd.DataFrame) -> Iterator[tuple[str, Numbers]]:
    """Yield the columns of a linear model: numbers, one for each value of a text, and 1."""
    import numpy as np

    yield "", np.ones(len(x))
    for name in x:
        if is_text(x[name]):
            for value in x[name].unique():
                yield f"{name}={value}", (x[name] == value).to_numpy(float)
        else:
            yield str(name), numbers_of(x[name])
