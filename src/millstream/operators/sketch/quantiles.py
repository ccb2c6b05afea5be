"""Below which value a share of all values is: medians, percentiles, ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.model.sketch import RANK_ERROR, quantiles_sql
from millstream.operators.fault import option_fault
from millstream.operators.sketch.column import as_column, check_error, with_estimates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from millstream.operators.sketch.column import ColumnOrName

_CALL = "ms.sketch.Quantiles"
_LEAST, _MOST = 8, 65_535
"""Spark's limits of k."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Finds quantiles of numbers, with an error of their rank.

    A column of it is a struct of `total`, `quantiles` (an array with the `rank`, `estimate`,
    `lower` and `upper` of each) and the bytes, `kll`. 99 times of 100 the quantile lies within its
    bounds. Few values are exact. What is left out of many is chosen by chance: two runs over the
    same rows have the same `total`, and estimates within the bounds.
    """

    error: float = 0.01
    """By how much the rank of an estimate is off at most, 99 times of 100."""
    at: Sequence[float] = (0.5, 0.95, 0.99)
    """The ranks that are estimated, as shares: 0.5 is the median."""
    k: int = field(init=False, repr=False, compare=False)
    """How many values the sketch keeps at its top level."""

    def __post_init__(self) -> None:
        at = location_of_caller()
        above, power = RANK_ERROR
        error = check_error(_CALL, self.error, above / _MOST**power, at)
        ranks = tuple(self.at) if isinstance(self.at, list | tuple) else ()
        if not ranks or not all(isinstance(r, int | float) and 0 <= r <= 1 for r in ranks):
            why, instead = "not ranks", "say shares from 0 to 1: at=(0.5, 0.99)"
            raise option_fault(_CALL, "at", self.at, why=why, instead=instead, at=at)
        object.__setattr__(self, "at", ranks)
        object.__setattr__(self, "k", max(_LEAST, math.ceil((above / error) ** (1 / power))))

    def of(self, column: ColumnOrName) -> Column:
        """Summarise the numbers of a column: an aggregate. Nulls and NaN are not counted."""
        from pyspark.sql import functions as F

        return self._estimated(F.kll_sketch_agg_double(as_column(column).cast("double"), self.k))

    def merged(self, column: ColumnOrName) -> Column:
        """Merge the summaries of a column: an aggregate."""
        from pyspark.sql import functions as F

        return self._estimated(F.kll_merge_agg_double(_kll(column), self.k))

    def value(self, column: ColumnOrName, rank: float) -> Column:
        """Estimate another quantile of a stored summary; null if it has no values."""
        from pyspark.sql import functions as F

        kll = _kll(column)
        found = F.kll_sketch_get_quantile_double(kll, F.lit(float(rank)))
        return F.when(F.kll_sketch_get_n_double(kll) > 0, found)

    def rank(self, column: ColumnOrName, value: float) -> Column:
        """Estimate which share of the values is at most this one; null if there are none."""
        from pyspark.sql import functions as F

        kll = _kll(column)
        found = F.kll_sketch_get_rank_double(kll, F.lit(float(value)))
        return F.when(F.kll_sketch_get_n_double(kll) > 0, found)

    def _estimated(self, kll: Column) -> Column:
        return with_estimates(kll, lambda data: quantiles_sql(data, self.at, self.k))


def _kll(column: ColumnOrName) -> Column:
    return as_column(column).getField("kll")
