"""The greatest rows of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from millstream.declare.function import location_of_caller
from millstream.operators.fault import column_fault, option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location

    Ties = Literal["cut", "all"]

_CALL = "ms.top_k"
_MOST = 100_000
"""The limit of Spark's max_by."""
_TIES = ("cut", "all")
RANK = "rank"
_TOP, _FIRSTS, _PLACE, _ROW = "_top", "_firsts", "_place", "_row"


def top_k(
    rows: DataFrame,
    *,
    by: str | Sequence[str],
    k: int,
    per: str | Sequence[str] = (),
    ties: Ties = "cut",
) -> DataFrame:
    """Return the k greatest rows of each group, greatest first, with their `rank` from 1 on.

    Of rows that are equal in `by`, those that are greater in their other columns come first, column
    by column from the left: never those that arrive first. A null is the least value. With
    `ties="all"` rows that are equal in `by` have the same rank, as in SQL's RANK, and all that are
    equal to the k-th row are kept.

    In a stream in append mode the groups need a window or an event time with a watermark; in update
    mode the key of the table is that of the group and `rank`, which `ties="all"` does not have.
    State holds k rows per group; with `ties="all"`, all rows.

    Args:
        rows: Rows, such as counts per window.
        by: Columns that order them, descending.
        k: How many, from 1 on.
        per: Columns of the group; by default all rows are one.
        ties: `cut` gives exactly k rows, `all` also those that are equal to the last of them.

    Raises:
        DeclarationError: A column is missing or has no order, or k is less than 1.
    """
    at = location_of_caller()
    from pyspark.sql import functions as F

    from millstream.operators.columns import names_of, quoted

    orders, groups = names_of(by), names_of(per)
    _check(rows, orders, groups, at)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MOST:
        why, instead = "not a number of rows", f"say a whole number from 1 to {_MOST}"
        raise option_fault(_CALL, "k", k, why=why, instead=instead, at=at)
    if ties not in _TIES:
        instead = f"use one of {', '.join(_TIES)}"
        raise option_fault(_CALL, "ties", ties, why="not known", instead=instead, at=at)
    others = [name for name in rows.columns if name not in (*orders, *groups)]
    ranked = F.struct(*map(quoted, (*orders, *others)))
    grouped = rows.groupBy(*map(quoted, groups))
    if ties == "cut":
        top = grouped.agg(F.max_by(ranked, ranked, k).alias(_TOP))
        placed = top.select(*map(quoted, groups), F.posexplode(_TOP).alias(_PLACE, _ROW))
        rank = F.col(_PLACE) + 1
    else:
        every = grouped.agg(F.sort_array(F.collect_list(ranked), asc=False).alias(_TOP))
        placed, rank = _with_ties(every, groups, orders, k)
    return placed.select(
        *(quoted(n) if n in groups else quoted(n, _ROW).alias(n) for n in rows.columns),
        rank.alias(RANK),
    )


def _with_ties(
    every: DataFrame, groups: Sequence[str], orders: Sequence[str], k: int
) -> tuple[DataFrame, Column]:
    """Keep rows that are not less than the k-th; return them, and the rank of each."""
    from pyspark.sql import functions as F

    from millstream.operators.columns import quoted

    def order(row: Column) -> Column:
        return F.struct(*(row.getField(name).alias(str(n)) for n, name in enumerate(orders)))

    firsts = F.transform(F.slice(_TOP, 1, k), order).alias(_FIRSTS)
    headed = every.select(*map(quoted, groups), _TOP, firsts)
    kept = F.filter(_TOP, lambda row: order(row) >= F.try_element_at(_FIRSTS, F.lit(-1)))
    placed = headed.select(*map(quoted, groups), _FIRSTS, F.explode(kept).alias(_ROW))
    # A row that is kept is equal to one of the first k: where it first is, is its rank.
    return placed, F.array_position(_FIRSTS, order(F.col(_ROW))).cast("int")


def _check(rows: DataFrame, orders: Sequence[str], groups: Sequence[str], at: Location) -> None:
    """Check the columns that rows are grouped and ordered by."""
    from millstream.operators.columns import check_columns, check_order

    check_columns(rows, orders, call=_CALL, option="by", at=at)
    check_columns(rows, groups, call=_CALL, option="per", at=at)
    if RANK in rows.columns:
        why = "which is what the answer calls the place of a row: rename it"
        raise column_fault(_CALL, RANK, why=why, columns=rows.columns, at=at)
    check_order(rows, groups, call=_CALL, at=at)
