"""The chance of a row: a number from 0 to 1 that is a hash of its key, so always the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.operators.fault import column_fault, option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location

WEIGHT = "weight"
"""How many rows of the input a row of a sample stands for."""
_BITS = 53
"""Those that a DOUBLE holds exactly."""


def chance(keys: Sequence[str], seed: int) -> Column:
    """Return a number above 0 and below 1, spread evenly over keys."""
    from pyspark.sql import functions as F

    from millstream.operators.columns import quoted

    hashed = F.xxhash64(F.lit(seed), *map(quoted, keys))
    top = F.shiftrightunsigned(hashed, 64 - _BITS).cast("double")
    return (top + 0.5) * F.lit(2.0**-_BITS)


def check_sample(
    rows: DataFrame, by: Sequence[str], seed: object, *, call: str, at: Location
) -> None:
    """Check the key and the seed of a sample, and that no column is called like its weight.

    Raises:
        OPERATOR_COLUMN: A column is missing, or has the name of the weight.
        OPERATOR_OPTION: There is no key, or the seed is no number.
    """
    from pyspark.sql.types import MapType, VariantType

    from millstream.operators.columns import check_columns, has_within

    if not by:
        why, instead = "a row is chosen by its key", 'name columns that tell rows apart: by="id"'
        raise option_fault(call, "by", by, why=why, instead=instead, at=at)
    if isinstance(seed, bool) or not isinstance(seed, int):
        why, instead = "not a seed", "say a whole number: another seed gives another sample"
        raise option_fault(call, "seed", seed, why=why, instead=instead, at=at)
    check_columns(rows, by, call=call, option="by", at=at)
    for name in by:
        kind = rows.schema[name].dataType
        if has_within(kind, (MapType, VariantType)):
            why = f"which is {kind.simpleString()}: such a key has no hash"
            raise column_fault(call, name, option="by", why=why, columns=rows.columns, at=at)
    if WEIGHT in (name.lower() for name in rows.columns):
        why = "which is what a sample calls the weight of a row: rename it"
        raise column_fault(call, WEIGHT, why=why, columns=rows.columns, at=at)


def check_amount(rows: DataFrame, name: str, *, call: str, at: Location) -> None:
    """Check that a column is of numbers.

    Raises:
        OPERATOR_COLUMN: It is missing, or is not.
    """
    from pyspark.sql.types import NumericType

    from millstream.operators.columns import check_columns

    check_columns(rows, [name], call=call, option="amount", at=at)
    if not isinstance(rows.schema[name].dataType, NumericType):
        why = "which is not a number"
        raise column_fault(call, name, option="amount", why=why, columns=rows.columns, at=at)
