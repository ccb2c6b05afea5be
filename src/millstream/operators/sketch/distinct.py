"""How many different values there are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.model.sketch import DEVIATIONS, distinct_sql
from millstream.operators.sketch.column import as_column, check_error, with_estimates

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millstream.operators.sketch.column import ColumnOrName

_LEAST, _MOST = 4, 26
"""Spark's limits of the logarithm of how many hashes are kept."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """Counts different values, with an error; counts can be united, intersected and subtracted.

    A column of it is a struct of `estimate`, `lower`, `upper` and the bytes, `theta`: 95 times of
    100 the number lies within the bounds. Up to `1 / error²` times four different values are
    counted exactly. The bytes depend on the values alone, in whatever order and batches they come.
    """

    error: float = 0.02
    """By which share of the number the estimate is off at most, 95 times of 100."""
    lg_k: int = field(init=False, repr=False, compare=False)
    """The logarithm, base 2, of how many hashes are kept."""

    def __post_init__(self) -> None:
        least = DEVIATIONS / math.sqrt(2**_MOST)
        error = check_error("ms.sketch.Distinct", self.error, least, location_of_caller())
        needed = math.ceil(2 * math.log2(DEVIATIONS / error))
        object.__setattr__(self, "lg_k", max(_LEAST, needed))

    def of(self, column: ColumnOrName) -> Column:
        """Count the values of a column: an aggregate. Nulls and empty texts are not counted."""
        from pyspark.sql import functions as F

        return _estimated(F.theta_sketch_agg(as_column(column), self.lg_k))

    def merged(self, column: ColumnOrName) -> Column:
        """Unite the counts of a column: an aggregate."""
        from pyspark.sql import functions as F

        return _estimated(F.theta_union_agg(_theta(column), self.lg_k))

    def union(self, one: ColumnOrName, other: ColumnOrName) -> Column:
        """Count the values that are in one of two counts, or in both."""
        from pyspark.sql import functions as F

        return _estimated(F.theta_union(_theta(one), _theta(other), self.lg_k))

    def intersection(self, one: ColumnOrName, other: ColumnOrName) -> Column:
        """Count the values that are in both of two counts.

        Its error is a share of the union: that of few values among many is large, as the bounds
        show.
        """
        from pyspark.sql import functions as F

        return _estimated(F.theta_intersection(_theta(one), _theta(other)))

    def difference(self, one: ColumnOrName, other: ColumnOrName) -> Column:
        """Count the values that are in the first of two counts and not in the second."""
        from pyspark.sql import functions as F

        return _estimated(F.theta_difference(_theta(one), _theta(other)))


def _theta(column: ColumnOrName) -> Column:
    return as_column(column).getField("theta")


def _estimated(theta: Column) -> Column:
    return with_estimates(theta, distinct_sql)
