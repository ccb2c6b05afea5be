"""The most frequent values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.model.sketch import greatest_error_sql, heavy_hitters_sql
from millstream.operators.fault import option_fault
from millstream.operators.sketch.column import as_column, check_error, with_estimates

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millstream.operators.sketch.column import ColumnOrName

_CALL = "ms.sketch.HeavyHitters"
_FULL = 0.75
"""The share of its table that Spark's sketch fills before it drops the rarest values."""
_ERROR = 3.5
"""The greatest error of a frequency is this over the size of the table."""
_MOST = 2**20


@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """Finds the values that are most frequent, and how often each is there.

    A column of it is a struct of `total` (of rows without a null), `top` (an array with the `item`,
    `estimate`, `lower` and `upper` of each, most frequent first, of equals the least) and what is
    kept, `items`. A
    frequency always lies within its bounds. `top` has at most k values, and each that is there more
    often than twice the error; in a column where no value is that frequent, it is empty.
    """

    k: int = 10
    """How many values are listed."""
    error: float = 0.001
    """By which share of all rows a frequency is off at most."""
    tracked: int = field(init=False, repr=False, compare=False)
    """How many values are tracked."""

    def __post_init__(self) -> None:
        at = location_of_caller()
        error = check_error(_CALL, self.error, _ERROR / _MOST, at)
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            why, instead = "not a number of values", "say a whole number from 1 on"
            raise option_fault(_CALL, "k", self.k, why=why, instead=instead, at=at)
        size = 2 ** max(3, math.ceil(math.log2(_ERROR / error)))
        while size * _FULL < self.k:
            size *= 2
        if size > _MOST:
            why, instead = "more than a sketch can list", f"say at most {int(_MOST * _FULL)}"
            raise option_fault(_CALL, "k", self.k, why=why, instead=instead, at=at)
        object.__setattr__(self, "tracked", int(size * _FULL))

    def of(self, column: ColumnOrName) -> Column:
        """Summarise the values of a column: an aggregate."""
        from pyspark.sql import functions as F

        tracked = F.lit(self.tracked)
        return self._estimated(
            F.call_function("approx_top_k_accumulate", as_column(column), tracked)
        )

    def merged(self, column: ColumnOrName) -> Column:
        """Merge the summaries of a column: an aggregate."""
        from pyspark.sql import functions as F

        items = as_column(column).getField("items")
        return self._estimated(F.call_function("approx_top_k_combine", items, F.lit(self.tracked)))

    def frequency(self, column: ColumnOrName, item: object) -> Column:
        """Estimate how often a value is there: `estimate`, `lower` and `upper`.

        A value that is not among the frequent ones may be there up to `upper` times.
        """
        from pyspark.sql import functions as F

        items = as_column(column).getField("items")
        listed = self._listed(items, self.tracked)["top"]
        same = F.filter(listed, lambda one: one["item"].eqNullSafe(F.lit(item)))
        found, off = F.try_element_at(same, F.lit(1)), with_estimates(items, greatest_error_sql)
        # What Spark lists is more frequent than twice the error.
        rest = {"estimate": F.lit(0), "lower": F.lit(0), "upper": 2 * off}
        values = (
            F.coalesce(found[name], value).cast("bigint").alias(name)
            for name, value in rest.items()
        )
        return F.when(items.isNotNull(), F.struct(*values))

    def _estimated(self, items: Column) -> Column:
        return self._listed(items, self.k)

    def _listed(self, items: Column, k: int) -> Column:
        return with_estimates(items, lambda data: heavy_hitters_sql(data, k, self.tracked))
