"""Learners whose statistics merge: many rows at once, summed up on all partitions.

Each learns the rows of a slice of time from their sums, which are exact: which partition or batch
had a row, and in which order they came, does not matter. Rows are computed one like the other, so
a row gives the same numbers beside any others.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

from millstream.learn.exact import added, exact_sum
from millstream.learn.learner import Task
from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from millstream.learn.exact import Sums

    Numbers = NDArray[np.float64]
    HalfLife = int | str | None
    """After how many rows, or how much event time, what was learnt counts half."""


class Slice(NamedTuple):
    """The rows that are learnt at once."""

    rows: int
    seconds: float
    """How long after the slice before it ends."""

    def decay(self, half_life: HalfLife) -> float:
        """Return how much of what was learnt before still counts.

        >>> Slice(rows=50, seconds=60).decay(100), Slice(rows=50, seconds=60).decay("1 minute")
        (0.7071067811865476, 0.5)
        """
        if half_life is None:
            return 1.0
        if isinstance(half_life, int):
            return float(0.5 ** (self.rows / half_life))
        return float(0.5 ** (self.seconds / parse_duration(half_life).total_seconds()))


class Merging(Protocol):
    """A learner whose statistics merge."""

    task: ClassVar[Task]
    takes_text: ClassVar[bool]
    """Whether features may be of type STRING."""

    def sums(self, x: pd.DataFrame, y: Sequence[Any]) -> Sums:
        """Sum up rows that are to be learnt: some of those of a slice."""
        ...

    def after(self, totals: Mapping[Any, Fraction], rows: Slice) -> Self:
        """Learn the rows of a slice by their sums."""
        ...

    def scores(self, x: pd.DataFrame) -> tuple[Sequence[Any], Sequence[float | None]]:
        """Predict, and say how probable or how far it is; None before anything is learnt."""
        ...


def is_merging(learner: object) -> bool:
    """Whether the statistics of a learner merge."""
    return all(hasattr(learner, name) for name in ("sums", "after", "scores"))


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
                if _is_text(rows[name]):
                    for value, count in Counter(rows[name].tolist()).items():
                        found[(label, name, "=", value)] = (float(count),)
                else:
                    numbers = _numbers(rows[name])
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
            if _is_text(x[name]):
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
                logs -= 0.5 * math.log(variance) + (_numbers(x[name]) - mean) ** 2 / (2 * variance)
        return logs


@dataclass(frozen=True, slots=True)
class KMeans:
    """K-means: centres that follow the rows, the older ones of which count less and less."""

    task: ClassVar = Task.CLUSTER
    takes_text: ClassVar = False

    clusters: int
    half_life: HalfLife = None
    """After how many rows (`10_000`) or how much event time (`"10 minutes"`) a row counts half."""
    seed: int = 0
    centres: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    weights: tuple[float, ...] = field(default=(), repr=False)
    """How many rows each centre is the mean of, as they count now."""

    _SAMPLE: ClassVar = 512
    """How many rows the first centres are chosen from."""

    def sums(self, x: pd.DataFrame, y: Sequence[Any]) -> Sums:  # noqa: ARG002
        """Sum up the rows near each centre; before there are any, sample rows by a hash."""
        import numpy as np

        points = np.column_stack([_numbers(x[name]) for name in x])
        if not self.centres:
            counts = Counter(map(tuple, points.tolist()))
            chosen = sorted(counts, key=lambda point: (_hash(point, self.seed), point))
            return {("row", *point): (float(counts[point]),) for point in chosen[: self._SAMPLE]}
        nearest, found = self._nearest(points)[0], dict[Any, tuple[float, ...]]()
        for cluster in range(len(self.centres)):
            mine = points[nearest == cluster]
            found[(cluster,)] = (float(len(mine)),)
            for place in range(mine.shape[1]):
                found[(cluster, place)] = exact_sum(mine[:, place].tolist())
        return found

    def after(self, totals: Mapping[Any, Fraction], rows: Slice) -> Self:
        """Move the centres to the rows near them."""
        if not self.centres:
            return self._begun(totals, rows)
        decay, centres, weights = rows.decay(self.half_life), list[Any](), list[float]()
        for cluster, (centre, weight) in enumerate(zip(self.centres, self.weights, strict=True)):
            kept, new = weight * decay, float(totals.get((cluster,), 0))
            sums = (float(totals.get((cluster, place), 0)) for place in range(len(centre)))
            moved = [(c * kept + s) / (kept + new) for c, s in zip(centre, sums, strict=True)]
            centres.append(tuple(moved) if new else centre)
            weights.append(kept + new)
        return replace(self, centres=tuple(centres), weights=tuple(weights))

    def scores(self, x: pd.DataFrame) -> tuple[Sequence[Any], Sequence[float | None]]:
        """Return the number of the nearest centre, and how far it is."""
        import numpy as np

        if not self.centres:
            return [None] * len(x), [None] * len(x)
        nearest, squares = self._nearest(np.column_stack([_numbers(x[name]) for name in x]))
        return nearest.tolist(), np.sqrt(squares).tolist()

    def _nearest(self, points: Numbers) -> tuple[NDArray[np.int64], Numbers]:
        import numpy as np

        squares = np.zeros((len(self.centres), len(points)))
        for cluster, centre in enumerate(self.centres):
            for place, middle in enumerate(centre):
                squares[cluster] += (points[:, place] - middle) ** 2
        return squares.argmin(axis=0), squares.min(axis=0)

    def _begun(self, totals: Mapping[Any, Fraction], rows: Slice) -> Self:
        """Choose the first centres: of several tries over the sample, the closest ones."""
        import numpy as np

        found = [name[1:] for name in totals if name[0] == "row"]
        sample = sorted(found, key=lambda point: (_hash(point, self.seed), point))[: self._SAMPLE]
        points, dice = np.array(sorted(sample)), np.random.default_rng(self.seed)
        counts = np.array([float(totals[("row", *point)]) for point in points.tolist()])
        tries = [_clustered(points, counts, self.clusters, dice) for _ in range(8)]
        centres = min(tries, key=lambda tried: tried[0])[1]
        begun = replace(self, centres=tuple(map(tuple, sorted(centres.tolist()))))
        nearest, share = begun._nearest(points)[0], rows.rows / counts.sum()
        near = np.bincount(nearest, counts, minlength=len(begun.centres)) * share
        return replace(begun, weights=tuple(near.tolist()))


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
        if _is_text(x[name]):
            for value in x[name].unique():
                yield f"{name}={value}", (x[name] == value).to_numpy(float)
        else:
            yield str(name), _numbers(x[name])


def _is_text(column: pd.Series[Any]) -> bool:
    return column.dtype == object and any(isinstance(value, str) for value in column)


def _numbers(column: pd.Series[Any]) -> Numbers:
    numbers: Numbers = column.to_numpy(float)
    return numbers


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


def _hash(point: tuple[float, ...], seed: int) -> int:
    return zlib.crc32(repr(point).encode(), seed)


def _clustered(
    points: Numbers, counts: Numbers, clusters: int, dice: np.random.Generator
) -> tuple[float, Numbers]:
    """Choose centres far from each other, then move them to the middle of what is near."""
    import numpy as np

    centres = points[[int(dice.integers(len(points)))]]
    while len(centres) < min(clusters, len(points)):
        squares = ((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1) * counts
        if not squares.any():
            break
        chosen = int(np.searchsorted(squares.cumsum(), dice.random() * squares.sum(), "right"))
        centres = np.vstack([centres, points[min(chosen, len(points) - 1)]])
    for _ in range(10):
        near = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        for cluster in range(len(centres)):
            if (mine := near == cluster).any():
                centres[cluster] = np.average(points[mine], axis=0, weights=counts[mine])
    squares = ((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
    return float((squares * counts).sum()), centres
