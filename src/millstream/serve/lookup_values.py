"""Look-up values from Python: each is converted to the type of its column, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isinf, isnan
from typing import TYPE_CHECKING, Any
from uuid import UUID

from millstream.errors import fault
from millstream.serve.lookup_text import expected_of, from_text
from millstream.serve.shape import NESTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.serve.shape import Column

_SHOWN = (bool, int, float, Decimal, bytes, date)
"""What an error shows as it is; all else by its repr."""


def from_python(value: Any, column: Column, dataset: str) -> Any:
    """Convert a value of the key to its column's type, whatever kind of number or time it is.

    Raises:
        LOOKUP_VALUE: It is not a value of the column.

    >>> from millstream.serve.shape import Column
    >>> from_python(7.0, Column("n", "long"), "latest"), from_python(7, Column("x", "double"), "y")
    (7, 7.0)
    """
    if hasattr(value, "dtype") and hasattr(value, "item"):
        # A number of numpy's.
        value = value.item()
    kind = "decimal" if column.is_decimal else column.type
    try:
        return _CONVERT[kind](value, column, dataset)
    except (TypeError, ValueError, ArithmeticError):
        shown = value if isinstance(value, _SHOWN) or value is None else repr(value)
        raise fault(
            "LOOKUP_VALUE",
            column=column.name,
            dataset=dataset,
            type=column.type,
            value=shown,
            expected="bytes" if kind == "binary" else expected_of(column),
        ) from None


def _text(value: Any, _: Column, __: str) -> str:
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str):
        raise TypeError
    return str.__str__(value)


def _boolean(value: Any, column: Column, dataset: str) -> Any:
    return value if isinstance(value, bool) else _read(value, column, dataset)


def _number(value: Any, column: Column, dataset: str) -> Any:
    """Read a number from the text that it would be written as."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return _read(value, column, dataset)
    is_whole = column.type in ("byte", "short", "integer", "long")
    if is_whole and value == int(value):
        value = int(value)
    if not is_whole and not column.is_decimal:
        value = float(value)
        if isnan(value) or isinf(value):
            return value
        value = repr(value)
    return from_text(str(value), column, dataset)


def _day(value: Any, column: Column, dataset: str) -> Any:
    if isinstance(value, datetime):
        if value.timetz() != time(0):
            raise ValueError
        return value.date()
    return value if isinstance(value, date) else _read(value, column, dataset)


def _moment(value: Any, column: Column, dataset: str) -> Any:
    if not isinstance(value, datetime):
        return _read(value.isoformat() if isinstance(value, date) else value, column, dataset)
    # A time of pandas' is one of Python's with more to it.
    exact = datetime.combine(value.date(), value.time(), value.tzinfo)
    return exact.astimezone(UTC) if exact.tzinfo else exact.replace(tzinfo=UTC)


def _wall_clock(value: Any, column: Column, dataset: str) -> Any:
    if not isinstance(value, datetime):
        return _read(value.isoformat() if isinstance(value, date) else value, column, dataset)
    if value.tzinfo is not None:
        raise ValueError
    return datetime.combine(value.date(), value.time())


def _bytes(value: Any, _: Column, __: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError
    return bytes(value)


def _nested(value: Any, column: Column, dataset: str) -> Any:
    if isinstance(value, list | tuple):
        return list(value)
    return value if isinstance(value, dict) else _read(value, column, dataset)


def _read(value: Any, column: Column, dataset: str) -> Any:
    """Read a value from its text."""
    if not isinstance(value, str):
        raise TypeError
    return from_text(value, column, dataset)


_CONVERT: dict[str, Callable[[Any, Column, str], Any]] = {
    "string": _text,
    "boolean": _boolean,
    **dict.fromkeys(("byte", "short", "integer", "long"), _number),
    **dict.fromkeys(("float", "double", "decimal"), _number),
    "date": _day,
    "timestamp": _moment,
    "timestamp_ntz": _wall_clock,
    "binary": _bytes,
    NESTED: _nested,
}
