"""A fixed number of rows of each group, all equally likely, or in proportion to an amount.

The rows with the least chances are kept. The least of the least of two parts are the least of the
whole, so state, batches and stored samples are merged without error, in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.operators.fault import column_fault, option_fault
from millstream.operators.sampling.chance import WEIGHT, chance, check_amount, check_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location

_MOST = 100_000
"""The limit of Spark's min_by, less one."""
PLACE = "place"
_ROW, _KEPT, _COUNT, _ORDER, _STANDS = "_row", "_kept", "_count", "_order", "_stands"


def reservoir(
    rows: DataFrame,
    k: int,
    *,
    per: str | Sequence[str] = (),
    by: str | Sequence[str],
    seed: int = 0,
) -> DataFrame:
    """Keep k rows of each group, each set of k equally likely, with `weight` and `place`.

    The hash of a row's key decides, so a replay keeps the same rows, in whatever order they come.
    Reservoirs that are stored are merged by the same call: with the columns `weight` and `place`, a
    row counts for as many as it stands for, and the result is the reservoir of all rows, if `k`,
    `by` and `seed` are the same.

    In a stream in update mode, the key of the table is that of the group and `place`; in append
    mode the group needs a window. State holds k rows per group.

    Args:
        rows: Rows, or stored reservoirs.
        k: How many rows.
        per: Columns of the group; by default all rows are one.
        by: Columns that tell rows apart.
        seed: Another one chooses other rows.

    Raises:
        DeclarationError: A column is missing, or k is less than 1.
    """
    at, call = location_of_caller(), "ms.sampling.reservoir"
    from pyspark.sql import functions as F

    from millstream.operators.columns import names_of, quoted

    is_stored = {WEIGHT, PLACE} <= {*rows.columns}
    stands_for = quoted(WEIGHT) if is_stored else F.lit(1.0)
    fresh = rows.withColumn(_STANDS, stands_for).drop(*(WEIGHT, PLACE) if is_stored else ())
    names, groups = names_of(by), names_of(per)
    _check(fresh, names, groups, k, seed, call=call, at=at)
    order = chance(names, seed)
    kept = _least(fresh, order, groups, k, F.round(F.sum(_STANDS)))
    share = F.greatest(F.col(_COUNT) / F.size(_KEPT), F.lit(1.0))
    columns = [name for name in fresh.columns if name != _STANDS]
    return _spread(kept, columns, groups, share)


def weighted_reservoir(
    rows: DataFrame,
    k: int,
    *,
    amount: str,
    per: str | Sequence[str] = (),
    by: str | Sequence[str],
    seed: int = 0,
) -> DataFrame:
    """Keep k rows of each group, large amounts rather than small ones, with `weight` and `place`.

    This is priority sampling: the k rows with the least chance for their amount are kept, and the
    weight follows from the first row that is not. `ms.sampling.estimate` of the amount has nearly
    the least error that k rows can have. A weighted reservoir cannot be merged once it is stored.

    Args:
        rows: Rows.
        k: How many rows.
        amount: A column of numbers; rows where it is not above 0 are left out.
        per: Columns of the group; by default all rows are one.
        by: Columns that tell rows apart.
        seed: Another one chooses other rows.

    Raises:
        DeclarationError: A column is missing or of another type, or k is less than 1.
    """
    at, call = location_of_caller(), "ms.sampling.weighted_reservoir"
    from pyspark.sql import functions as F

    from millstream.operators.columns import names_of, quoted

    names, groups = names_of(by), names_of(per)
    _check(rows, names, groups, k, seed, call=call, at=at)
    check_amount(rows, amount, call=call, at=at)
    value = quoted(amount).cast("double")
    positive = rows.where((value > 0) & ~F.isnan(value))
    kept = _least(positive, chance(names, seed) / value, groups, k + 1, F.count(F.lit(1)))
    limit = F.try_element_at(_KEPT, F.lit(k + 1))[_ORDER]
    first = kept.withColumns({"_limit": limit, _KEPT: F.slice(_KEPT, 1, k)})
    amount_of_row = quoted(amount, _ROW).cast("double")
    # The first row that is left out has the amount 1 / limit for its chance.
    weight = F.coalesce(F.greatest(1 / (F.col("_limit") * amount_of_row), F.lit(1.0)), F.lit(1.0))
    return _spread(first, rows.columns, groups, weight, "_limit")


def _least(
    rows: DataFrame, order: Column, groups: Sequence[str], k: int, count: Column
) -> DataFrame:
    """Keep the k rows of each group that are least in some order, least first."""
    from pyspark.sql import functions as F

    from millstream.operators.columns import quoted

    others = [name for name in rows.columns if name not in groups]
    row = F.struct(order.alias(_ORDER), *map(quoted, others))
    least = F.min_by(row, row, k).alias(_KEPT)
    return rows.groupBy(*map(quoted, groups)).agg(least, count.cast("double").alias(_COUNT))


def _spread(
    kept: DataFrame, columns: Sequence[str], groups: Sequence[str], weight: Column, *more: str
) -> DataFrame:
    """Return the kept rows of each group, each with its weight and place."""
    from pyspark.sql import functions as F

    from millstream.operators.columns import quoted

    spread = kept.select(
        *map(quoted, groups), _COUNT, _KEPT, *more, F.posexplode(_KEPT).alias("_at", _ROW)
    )
    return spread.select(
        *(quoted(n) if n in groups else quoted(n, _ROW).alias(n) for n in columns),
        weight.alias(WEIGHT),
        (F.col("_at") + 1).alias(PLACE),
    )


def _check(  # noqa: PLR0913 - what a reservoir is made of
    rows: DataFrame,
    names: Sequence[str],
    groups: Sequence[str],
    k: object,
    seed: object,
    *,
    call: str,
    at: Location,
) -> None:
    from millstream.operators.columns import check_columns, check_order

    check_sample(rows, names, seed, call=call, at=at)
    check_columns(rows, groups, call=call, option="per", at=at)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < _MOST:
        why, instead = "not a number of rows", f"say a whole number from 1 to {_MOST - 1}"
        raise option_fault(call, "k", k, why=why, instead=instead, at=at)
    if PLACE in rows.columns:
        why = "which is what a reservoir calls the place of a row: rename it"
        raise column_fault(call, PLACE, why=why, columns=rows.columns, at=at)
    check_order(rows, groups, call=call, at=at)
