"""Columns as typed Python objects: what rows, keys and state are to a function of a key."""

from __future__ import annotations

import decimal
from datetime import date, datetime
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from millstream.model.data_type import Array, Atom, Decimal, Map, Struct as StructKind, Type

if TYPE_CHECKING:
    from millstream.model.schema import Schema

_ATOMS: dict[Atom, Any] = {
    Atom.STRING: str,
    Atom.BOOLEAN: bool,
    Atom.TINYINT: Annotated[int, Meta(ge=-(2**7), le=2**7 - 1)],
    Atom.SMALLINT: Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)],
    Atom.INT: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)],
    Atom.BIGINT: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
    Atom.FLOAT: float,
    Atom.DOUBLE: float,
    Atom.DATE: date,
    Atom.TIMESTAMP: Annotated[datetime, Meta(tz=True)],
    Atom.TIMESTAMP_NTZ: Annotated[datetime, Meta(tz=False)],
    Atom.BINARY: bytes,
}


_PLAIN = (Atom.STRING, Atom.BOOLEAN, Atom.TINYINT, Atom.SMALLINT, Atom.INT, Atom.BIGINT)


class KeyState(Struct):
    """The state of a key; its columns are attributes."""

    def clear(self) -> None:
        """Reset to the initial state: the key is forgotten."""
        fresh = type(self)()
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))


@lru_cache(maxsize=256)
def record_of(schema: Schema) -> type[Struct]:
    """Make the type of a row: immutable, null where a column is missing, and no other columns."""
    return msgspec.defstruct("Row", _fields(schema), frozen=True, forbid_unknown_fields=True)


@lru_cache(maxsize=256)
def state_of(schema: Schema) -> type[KeyState]:
    """Make the type of a state: lists and maps begin empty, all else as None."""
    fields: list[Any] = []
    for column in schema.fields:
        kind = _type(column.type)
        match column.type:
            case Array():
                fields.append((column.name, kind, field(default_factory=list)))
            case Map():
                fields.append((column.name, kind, field(default_factory=dict)))
            case _:
                fields.append((column.name, kind | None, None))
    made: Any = msgspec.defstruct("State", fields, bases=(KeyState,), array_like=True)
    return made  # type: ignore[no-any-return]


def is_plain(schema: Schema) -> bool:
    """Whether all columns are of types that reach Spark as they are, without text."""
    return all(column.type in _PLAIN for column in schema.fields)


def has_numbers_to_check(schema: Schema) -> bool:
    """Whether a value may fit the Python type and not the column: a decimal, or NaN."""
    return any(_needs_check(column.type) for column in schema.fields)


def to_json_value(value: Any, kind: Type) -> Any:
    """Write numbers that JSON does not have as text that Spark reads.

    Raises:
        ValueError: A decimal has more digits than the column.
    """
    if value is None or not _needs_check(kind):
        return value
    match kind:
        case Decimal():
            return _check_digits(value, kind)
        case Atom():
            return value if isfinite(value) else _NON_FINITE[str(value)]
        case Array():
            return [to_json_value(v, kind.element) for v in value]
        case Map():
            return {k: to_json_value(v, kind.value) for k, v in value.items()}
        case StructKind():
            return {f.name: to_json_value(getattr(value, f.name), f.type) for f in kind.fields}


_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _check_digits(value: decimal.Decimal, kind: Decimal) -> decimal.Decimal:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a DECIMAL({kind.precision},{kind.scale})")  # noqa: TRY003, TRY004
    before = len(digits) + exponent if any(digits) else 0
    if -exponent > kind.scale or before > kind.precision - kind.scale:
        raise ValueError(  # noqa: TRY003
            f"{value} has more digits than DECIMAL({kind.precision},{kind.scale})"
        )
    return value


def _needs_check(kind: Type) -> bool:
    match kind:
        case Decimal() | Atom.FLOAT | Atom.DOUBLE:
            return True
        case Array():
            return _needs_check(kind.element)
        case Map():
            return _needs_check(kind.value)
        case StructKind():
            return any(_needs_check(f.type) for f in kind.fields)
        case _:
            return False


def _fields(schema: Schema | StructKind) -> list[Any]:
    return [(column.name, _type(column.type) | None, None) for column in schema.fields]


def _type(kind: Type) -> Any:
    match kind:
        case Atom():
            return _ATOMS[kind]
        case Decimal():
            return decimal.Decimal
        case Array():
            return list[_type(kind.element) | None]  # type: ignore[misc]
        case Map():
            return dict[str, _type(kind.value) | None]  # type: ignore[misc]
        case StructKind():
            return msgspec.defstruct("Part", _fields(kind))
