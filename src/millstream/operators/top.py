"""The greatest rows of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.declare import location_of_caller
from millstream.operators.fault import column_fault, option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

_CALL = "ms.top_k"
_MOST = 100_000
"""What Spark's max_by takes."""
RANK = "rank"


def top_k(
    rows: DataFrame, *, by: str | Sequence[str], k: int, per: str | Sequence[str] = ()
) -> DataFrame:
    """Give the k greatest rows of each group, greatest first, with their `rank` from 1 on.

    Of rows that are equal in `by`, those that are greater in their other columns come first: never
    those that arrive first. In a stream in append mode the groups need a window or an event time
    with a watermark; in update mode the key of the table is that of the group and `rank`. State
    holds k rows per group.

    Args:
        rows: Rows, such as counts per window.
        by: Columns that order them, descending.
        k: How many, from 1 on.
        per: Columns of the group; by default all rows are one.

    Raises:
        DeclarationError: A column is missing or has no order, or k is less than 1.
    """
    at = location_of_caller()
    from pyspark.sql import functions as F
    from pyspark.sql.types import CalendarIntervalType, MapType, VariantType

    from millstream.operators.columns import has_within, hold_columns, names_of, quoted

    orders, groups = names_of(by), names_of(per)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MOST:
        why, instead = "not a number of rows", f"say a whole number from 1 to {_MOST}"
        raise option_fault(_CALL, "k", k, why=why, instead=instead, at=at)
    hold_columns(rows, orders, call=_CALL, option="by", at=at)
    hold_columns(rows, groups, call=_CALL, option="per", at=at)
    if RANK in rows.columns:
        why = "which is what the answer calls the place of a row: rename it"
        raise column_fault(_CALL, RANK, why=why, columns=rows.columns, at=at)
    others = [name for name in rows.columns if name not in (*orders, *groups)]
    for name in (*orders, *others):
        kind = rows.schema[name].dataType
        if has_within(kind, (MapType, VariantType, CalendarIntervalType)):
            why = f"which is {kind.simpleString()}: such rows have no order"
            raise column_fault(_CALL, name, why=why, columns=rows.columns, at=at)
    ranked = F.struct(*map(quoted, (*orders, *others)))
    top = rows.groupBy(*map(quoted, groups)).agg(F.max_by(ranked, ranked, k).alias("_top"))
    placed = top.select(*map(quoted, groups), F.posexplode("_top").alias("_place", "_row"))
    return placed.select(
        *(quoted(n) if n in groups else quoted(n, "_row").alias(n) for n in rows.columns),
        (F.col("_place") + 1).alias(RANK),
    )
