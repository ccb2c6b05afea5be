"""How pieces of text become values, strictly by type: cells of CSV, and parts of lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.landing.decode.column import NUMBER, number
from millstream.landing.decode.fault import expected, shown
from millstream.landing.decode.reader import MalformedError
from millstream.model.data_type import Atom, Decimal, Field, Type, type_ddl
from millstream.model.ddl import schema_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from millstream.model.codec import CsvOptions

_INT = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBERS = (Atom.TINYINT, Atom.SMALLINT, Atom.INT, Atom.BIGINT, Atom.FLOAT, Atom.DOUBLE)
_BOOLEANS = {"true": True, "false": False}


def cell_type(field: Field, of: str = "CSV") -> Atom | Decimal:
    """Return the type of a column that is read from text.

    Raises:
        SchemaError: It has parts.
    """
    if isinstance(field.type, Atom | Decimal):
        return field.type
    what = f"{of} column {field.name!r} is {type_ddl(field.type)}"
    raise schema_fault(what, fix="give it a type without parts, or read JSON")


def is_number(kind: Type) -> bool:
    """Return whether a type is one of numbers."""
    return kind in _NUMBERS or isinstance(kind, Decimal)


def cell_reader(
    field: Field, nulls: Collection[str] = (), plain: Callable[[str], str] | None = None
) -> Callable[[str | None], Any]:
    """Make the function that reads the cells of one column, or raises `MalformedError`.

    Args:
        field: The column.
        nulls: What stands for null, beside an empty cell.
        plain: Writes a number as it is read here, or raises one of `UNFIT`.
    """
    read, place = _READERS.get(field.type, number), f"in column {field.name!r}"
    if plain is not None:
        read = _both(plain, read)

    others = frozenset(nulls) - {""}

    def cell(text: str | None) -> Any:
        if not text or (others and text in others):
            if field.nullable:
                return None
            reason = f"missing required value, {place}"
            raise MalformedError(reason)
        try:
            return read(text)
        except (ValueError, ArithmeticError, LookupError, msgspec.ValidationError):
            wanted = expected(cell_type(field))
            reason = f"expected {wanted}, got {shown(text)!r}, {place}"
            raise MalformedError(reason) from None

    return cell


def _both(first: Callable[[str], str], then: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: then(first(text))


def plain_numbers(options: CsvOptions) -> Callable[[str], str] | None:
    """Make the function that writes a number with a point and without separators of thousands.

    It raises a ValueError for what is no number in that way of writing; None if there is no need.
    """
    if options.decimal == "." and not options.thousands:
        return None
    mark, group = re.escape(options.decimal), re.escape(options.thousands)
    whole = rf"\d{{1,3}}(?:{group}\d{{3}})+|\d+" if group else r"\d+"
    pattern = re.compile(rf"([+-]?)({whole})?(?:{mark}(\d*))?([eE][+-]?\d+)?", re.ASCII)

    def plain(text: str) -> str:
        found = pattern.fullmatch(text)
        if found is None:
            raise ValueError(text)
        sign, digits, decimals, exponent = found.groups("")
        digits = digits.replace(options.thousands, "") if options.thousands else digits
        point = "" if found[3] is None else f".{decimals}"
        return f"{sign}{digits}{point}{exponent}"

    return plain


def _int(cell: str) -> int:
    if not _INT.fullmatch(cell):
        raise ValueError(cell)
    return int(cell)


def _float(cell: str) -> float:
    if not NUMBER.fullmatch(cell):
        raise ValueError(cell)
    return float(cell)


def _boolean(cell: str) -> bool:
    return _BOOLEANS[cell.lower()]


def _base64(cell: str) -> bytes:
    return msgspec.convert(cell, bytes)


_READERS: dict[Type, Callable[[str], Any]] = {
    Atom.STRING: str,
    Atom.BOOLEAN: _boolean,
    Atom.TINYINT: _int,
    Atom.SMALLINT: _int,
    Atom.INT: _int,
    Atom.BIGINT: _int,
    Atom.FLOAT: _float,
    Atom.DOUBLE: _float,
    Atom.DATE: str,
    Atom.TIMESTAMP: str,
    Atom.TIMESTAMP_NTZ: str,
    Atom.BINARY: _base64,
}
