"""The order of rows of a key at the same instant, as one value of a row that sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)

from millstream.operators.columns import quoted
from millstream.operators.state.row_text import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_WHOLE = (BooleanType, ByteType, ShortType, IntegerType, LongType)
_LEAST = -(2**63)


def can_order(kind: DataType) -> bool:
    """Whether rows can be ordered by a column of a type."""
    return isinstance(kind, (*_WHOLE, DateType, TimestampType)) or kind == StringType()


def tie_of(rows: DataFrame, tie_by: Sequence[str]) -> Column:
    """Return what orders rows at the same instant: `tie_by`, then a hash of all columns.

    Without `tie_by` it is the hash alone. With it, it is a text that sorts, character by character,
    as the columns do. The hash counts all columns, whatever is selected of them; a null is left
    out, so that rows keep their place when a source gains a column.
    """
    hashed = F.xxhash64(F.to_json(F.struct(*map(quoted, rows.columns)), JSON))
    if not tie_by:
        return hashed
    sorting = (_sorting(quoted(name), rows.schema[name].dataType) for name in tie_by)
    return F.concat(*sorting, _digits(hashed))


def _sorting(column: Column, kind: DataType) -> Column:
    """Return a text that sorts as a column does; a null comes first."""
    match kind:
        case StringType():
            # It ends with what is less than any character, so that no text is a part of another.
            text = F.concat(F.replace(column, F.lit("\0"), F.lit("\0\1")), F.lit("\0\0"))
        case TimestampType():
            text = _digits(F.unix_micros(column))
        case DateType():
            text = _digits(F.unix_date(column))
        case _:
            text = _digits(column)
    return F.coalesce(F.concat(F.lit("1"), text), F.lit("0"))


def _digits(number: Column) -> Column:
    """Return a whole number in as many digits as the greatest has; negative ones come first."""
    return F.lpad(F.hex(number.cast("bigint").bitwiseXOR(F.lit(_LEAST))), 16, "0")
