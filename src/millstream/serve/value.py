"""Values in stores: Arrow columns to texts and numbers, and back."""

from __future__ import annotations

import json
import math
import struct
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from millstream.errors import fault
from millstream.serve.lookup_text import scaled
from millstream.serve.shape import NESTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from millstream.serve.fence import Place
    from millstream.serve.shape import Column

    Values = pa.ChunkedArray[Any]

_INTEGERS = ("byte", "short", "integer", "long")
_FLOATS = ("float", "double")
_LARGEST_OF_32_BITS = 3.4028234e38
_READ: dict[str, Callable[[Any], Any]] = {
    "boolean": lambda value: bool(int(value)),
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(_FLOATS, float),
    "timestamp": datetime.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
    "date": date.fromisoformat,
    NESTED: json.loads,
}


class RowsRefusedError(Exception):
    """Some of the rows cannot be stored; halving them finds which."""


@contextmanager
def refusing(column: str) -> Iterator[None]:
    """Refuse rows whose values Python cannot hold.

    Spark's can be text that is not UTF-8, and times after the year 9999.

    Raises:
        RowsRefusedError: There are such rows.
    """
    try:
        yield
    except (ValueError, OverflowError) as error:
        why = f"column {column!r}: {error}"
        raise RowsRefusedError(why) from error


def as_csv(rows: pa.Table, columns: Sequence[Column]) -> bytes:
    """Write rows as CSV: null is nothing, a text is always quoted, times are in UTC."""
    for index, column in enumerate(columns):
        values = rows.column(column.name)
        if column.type == NESTED:
            rows = rows.set_column(index, column.name, _as_json(values, column))
        elif column.type == "timestamp":
            # The reader takes it as UTC; with a zone, Arrow takes seven times as long.
            rows = rows.set_column(index, column.name, values.cast(pa.timestamp("us")))
        elif column.type == "binary":
            digits = [None if v is None else "\\x" + v.hex() for v in values.to_pylist()]
            rows = rows.set_column(index, column.name, pa.array(digits, pa.string()))
    text = pa.BufferOutputStream()
    csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
    return text.getvalue().to_pybytes()


def as_scalars(rows: pa.Table, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Return rows as numbers, texts and bytes, which any store can hold.

    Times are texts that sort chronologically; the zone is always UTC.
    """
    values = [_scalars(rows.column(column.name), column) for column in columns]
    return list(zip(*values, strict=True))


def as_texts(rows: pa.Table, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Return rows as texts, or as bytes where they are bytes."""
    values = []
    for column in columns:
        scalars = _scalars(rows.column(column.name), column)
        if column.type in _FLOATS:
            scalars = [None if v is None else repr(v) for v in scalars]
        elif column.type in (*_INTEGERS, "boolean"):
            scalars = [None if v is None else str(v) for v in scalars]
        values.append(scalars)
    return list(zip(*values, strict=True))


def from_store(value: Any, column: Column) -> Any:
    """Read a value of a column from a scalar or its text.

    >>> from millstream.serve.shape import Column
    >>> from_store("1.50", Column("price", "decimal(10,2)"))
    Decimal('1.50')
    """
    if value is None:
        return None
    if column.is_decimal:
        return Decimal(value)
    read = _READ.get(column.type)
    return read(value) if read else value


def row_from_store(
    columns: Iterable[Column], values: Iterable[Any], place: Place
) -> dict[str, Any]:
    """Read a row from what a store holds.

    Raises:
        StoreFailedError: Python cannot hold a value, such as a time after the year 9999.
    """
    row = {}
    for column, value in zip(columns, values, strict=True):
        try:
            row[column.name] = from_store(value, column)
        except (ValueError, ArithmeticError) as error:
            why = f"column {column.name!r} of the row cannot be read: {error}"
            raise fault("STORE_FAILED", store=place.name, why=why) from error
    return row


def scalar_of(value: Any, column: Column) -> Any:
    """Return one value as `as_scalars` does, to look a row up by."""
    if isinstance(value, datetime):
        kind = pa.timestamp("us", "UTC" if column.type == "timestamp" else None)
        return _scalars(pa.chunked_array([pa.array([value], kind)]), column)[0]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict | list | tuple):
        return _encode(value)
    return str(scaled(value, column)) if column.is_decimal else value


def _scalars(values: Values, column: Column) -> list[Any]:
    kind = values.type
    if column.type == NESTED:
        values = _as_json(values, column)
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_timestamp(kind):
        values = as_time_text(values, " ")
    elif pa.types.is_date(kind) or pa.types.is_decimal(kind):
        values = values.cast(pa.string())
    with refusing(column.name):
        return cast("list[Any]", values.to_pylist())


def as_time_text(values: Values, between: str) -> Values:
    """Write times in UTC, with what is to stand between day and hour; those of a zone end in Z."""
    # With a zone, Arrow takes seven times as long.
    text: Any = values.cast(pa.timestamp("us")).cast(pa.string())
    if between != " ":
        text = pc.replace_substring(text, pattern=" ", replacement=between)
    return cast(
        "Values", text if values.type.tz is None else pc.binary_join_element_wise(text, "Z", "")
    )


def _as_json(values: Values, column: Column) -> Values:
    with refusing(column.name):
        objects = values.to_pylist()
    texts = [None if v is None else _encode(plain(v, values.type)) for v in objects]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _encode(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def as_objects(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as dicts; maps are dicts too."""
    fields = {field.name: field.type for field in rows.schema}
    return [{n: named(row[n], kind) for n, kind in fields.items()} for row in rows.to_pylist()]


def named(
    value: Any, kind: pa.DataType, leaf: Callable[[Any, pa.DataType], Any] = lambda v, _: v
) -> Any:
    """Turn the pairs that Arrow gives for a map into an object.

    Args:
        value: What Arrow gives.
        kind: Its type.
        leaf: What becomes of values that have no parts.
    """
    if value is None:
        return None
    if isinstance(kind, pa.MapType):
        return {str(k): named(v, kind.item_type, leaf) for k, v in value}
    if isinstance(kind, pa.ListType):
        return [named(v, kind.value_type, leaf) for v in value]
    if isinstance(kind, pa.StructType):
        return {field.name: named(value[field.name], field.type, leaf) for field in kind}
    return leaf(value, kind)


def plain(value: Any, kind: pa.DataType) -> Any:
    """Return a nested value as JSON can hold it, the same in all stores.

    >>> plain([0.5, float("nan")], pa.list_(pa.float64()))
    [0.5, 'NaN']
    """
    return named(value, kind, _json_leaf)


def _json_leaf(value: Any, kind: pa.DataType) -> Any:
    if not isinstance(value, float):
        return value
    return number(_shortest(value) if pa.types.is_float32(kind) else value)


def number(value: float | None) -> float | str | None:
    """Replace a value that JSON has no number for by its name."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def _shortest(value: float) -> float:
    """Return the number with the fewest digits that rounds to the same 32-bit float.

    >>> _shortest(0.10000000149011612)
    0.1
    """
    for digits in range(6, 9):
        shorter = float(f"{value:.{digits}g}")
        if abs(shorter) <= _LARGEST_OF_32_BITS and _of_32_bits(shorter) == value:
            return shorter
    return value


def _of_32_bits(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def with_null(rows: pa.Table, columns: Sequence[str]) -> Values:
    """Return which rows have no value in one of some columns."""
    found = pc.is_null(rows.column(columns[0]))
    for name in columns[1:]:
        found = pc.or_(found, pc.is_null(rows.column(name)))
    return cast("Values", found)
