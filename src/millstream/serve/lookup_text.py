"""Look-up values from text, such as in a URL, and the description of what a column accepts."""

from __future__ import annotations

import json
import math
import re
import struct
from base64 import b64decode
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.serve.shape import NESTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.serve.shape import Column

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""As JSON has them here."""


def from_text(text: str, column: Column, dataset: str) -> Any:
    """Read a value of a column, written as in a JSON answer.

    Raises:
        LOOKUP_VALUE: It is not a value of the column.

    >>> from millstream.serve.shape import Column
    >>> from_text("7", Column("n", "long"), "latest")
    7
    >>> from_text("1.5", Column("price", "decimal(10,2)"), "latest")
    Decimal('1.50')
    """
    read, expected = _READ[_kind(column)]
    try:
        return read(text, column)
    except (ValueError, ArithmeticError, RecursionError):
        raise fault(
            "LOOKUP_VALUE",
            column=column.name,
            dataset=dataset,
            type=column.type,
            value=text,
            expected=expected,
        ) from None


def expected_of(column: Column) -> str:
    """Describe what a value of a column may be."""
    return _READ[_kind(column)][1]


def _kind(column: Column) -> str:
    return "decimal" if column.is_decimal else column.type


def scaled(value: Any, column: Column) -> Any:
    """Give a number as many digits after the point as its column has, if that changes nothing.

    >>> from millstream.serve.shape import Column
    >>> scaled(Decimal("1.5"), Column("price", "decimal(10,2)"))
    Decimal('1.50')
    """
    digits, scale = _digits(column)
    try:
        exact = Decimal(str(value))
        longer = exact.quantize(Decimal(1).scaleb(-scale), context=Context(prec=digits))
    except InvalidOperation:
        return value
    return longer if longer == exact else value


def _digits(column: Column) -> tuple[int, int]:
    """Say how many digits a decimal has, and how many of them stand after the point."""
    digits, scale = column.type.removeprefix("decimal(").removesuffix(")").split(",")
    return int(digits), int(scale)


def _same(text: str, _: Column) -> str:
    return text


def _boolean(text: str, _: Column) -> bool:
    return ("false", "true").index(text.lower()) == 1


def _whole(text: str, column: Column) -> int:
    number, most = int(_matched(_WHOLE, text)), 1 << _BITS[column.type] - 1
    if not -most <= number < most:
        raise OverflowError
    return number


def _real(text: str, column: Column) -> float:
    if text in _NOT_FINITE:
        return float(text)
    number = float(_matched(_REAL, text))
    if math.isinf(number):
        raise OverflowError
    # The nearest number of 32 bits is what the store has.
    return struct.unpack("<f", struct.pack("<f", number))[0] if column.type == "float" else number


def _decimal(text: str, column: Column) -> Decimal:
    number: Decimal = scaled(Decimal(_matched(_REAL, text)), column)
    if number.as_tuple().exponent != -_digits(column)[1]:
        raise OverflowError
    return number


def _moment(text: str, _: Column) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _wall_clock(text: str, _: Column) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError
    return moment


def _day(text: str, _: Column) -> date:
    return date.fromisoformat(text)


def _bytes(text: str, _: Column) -> bytes:
    return b64decode(text, validate=True)


def _nested(text: str, _: Column) -> Any:
    return json.loads(text)


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError
    return text


_READ: dict[str, tuple[Callable[[str, Column], Any], str]] = {
    "string": (_same, "a text"),
    "boolean": (_boolean, "true or false"),
    **{
        kind: (_whole, f"a whole number of at most {bits} bits, such as 7")
        for kind, bits in _BITS.items()
    },
    **dict.fromkeys(("float", "double"), (_real, "a number such as 7 or 2.5")),
    "decimal": (_decimal, "a number such as 2.50, with no more digits than the column has"),
    "date": (_day, "a day such as 2026-05-01"),
    "timestamp": (_moment, "a time such as 2026-05-01T12:00:41Z; without a zone it is in UTC"),
    "timestamp_ntz": (_wall_clock, "a time without a zone, such as 2026-05-01T12:00:41"),
    "binary": (_bytes, "bytes in base64"),
    NESTED: (_nested, "JSON, as an answer has it"),
}
