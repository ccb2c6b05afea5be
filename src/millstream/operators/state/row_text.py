"""Rows as text in the state of a stream, written and read back by Spark without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from millstream.operators.columns import quoted
from millstream.operators.fault import column_fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location

JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    # Spark does not read the column that is called so, by default `_corrupt_record`.
    "columnNameOfCorruptRecord": "\0 no column",
}
"""Text that keeps every microsecond."""

NULLS = {"ignoreNullFields": "false"}
WITH_NULLS = {**JSON, **NULLS}


def as_text(names: Sequence[str]) -> Column:
    """Write columns of a row as text; equal values are written alike."""
    return F.to_json(F.struct(*map(quoted, names)), WITH_NULLS)


def as_key(
    rows: DataFrame, names: Sequence[str], options: Mapping[str, str] = WITH_NULLS
) -> Column:
    """Write columns as the text of a key; what Spark groups together is written alike."""
    parts = (_alike(quoted(name), rows.schema[name].dataType).alias(name) for name in names)
    return F.to_json(F.struct(*parts), {**options})


def _alike(value: Column, kind: DataType) -> Column:
    """Take -0.0 as 0.0, which it equals."""
    match kind:
        case FloatType() | DoubleType():
            return F.when(value == 0, F.lit(0).cast(kind)).otherwise(value)
        case ArrayType():
            return F.transform(value, lambda element: _alike(element, kind.elementType))
        case StructType():
            fields = (_alike(value[f.name], f.dataType).alias(f.name) for f in kind.fields)
            return F.when(value.isNotNull(), F.struct(*fields))
        case _:
            return value


def from_text(text: str, rows: DataFrame, names: Sequence[str]) -> Column:
    """Read columns back as a struct; null if the text is empty.

    None of them is an event time to Spark any more, because the rows have been held back.
    """
    kind = StructType([StructField(name, rows.schema[name].dataType) for name in names])
    return F.when(F.col(text) != "", F.from_json(text, kind, JSON))


def check_kept_types(rows: DataFrame, names: Sequence[str], *, call: str, at: Location) -> None:
    """Check that columns can be read back from text without loss.

    Raises:
        OPERATOR_COLUMN: One has a type that text does not keep.
    """
    for name in names:
        if bad := next(unkept(rows.schema[name].dataType), None):
            why = f"which is {bad.simpleString()}: a stream cannot keep that"
            raise column_fault(call, name, why=why, columns=rows.columns, at=at)


def unkept(kind: DataType) -> Iterator[DataType]:
    """Find types that cannot be read back from JSON without loss."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield from unkept(field.dataType)
        case ArrayType():
            yield from unkept(kind.elementType)
        case MapType():
            if not isinstance(kind.keyType, StringType):
                yield kind
            yield from unkept(kind.valueType)
        case DayTimeIntervalType() | YearMonthIntervalType() | VariantType():
            yield kind
