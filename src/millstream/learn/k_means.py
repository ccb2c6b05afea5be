"""K-means whose centres move."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from millstream.learn.exact import exact_sum
from millstream.learn.learner import Task
from millstream.learn.merging import numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from millstream.learn.exact import Sums
    from millstream.learn.merging import HalfLife, Numbers, Slice


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

        points = np.column_stack([numbers_of(x[name]) for name in x])
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
        nearest, squares = self._nearest(np.column_stack([numbers_of(x[name]) for name in x]))
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
