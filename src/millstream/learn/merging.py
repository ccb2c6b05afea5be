"""Learners whose statistics merge: many rows at once, summed up on all partitions.

Each learns the rows of a slice of time from their sums, which are exact: which partition or batch
had a row, and in which order they came, does not matter. Rows are computed one like the other, so
a row gives the same numbers beside any others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from millstream.learn.exact import Sums
    from millstream.learn.learner import Task

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


def is_text(column: pd.Series[Any]) -> bool:
    """Return whether a feature is of type STRING."""
    return column.dtype == object and any(isinstance(value, str) for value in column)


def numbers_of(column: pd.Series[Any]) -> Numbers:
    """Return a feature as numbers."""
    numbers: Numbers = column.to_numpy(float)
    return numbers
