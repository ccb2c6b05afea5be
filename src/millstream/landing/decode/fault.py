"""Why a value does not fit its type, in words a person can act on."""

from __future__ import annotations

from decimal import Decimal as Number
from typing import Any

import msgspec

from millstream.landing.decode.column import UNFIT, number, ways
from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct, Type, type_ddl

_GOT = {
    type(None): "null",
    bool: "boolean",
    int: "int",
    float: "float",
    Number: "float",
    str: "string",
    list: "array",
    dict: "object",
}
_EXPECTED: dict[Type, tuple[str, tuple[type, ...]]] = {
    Atom.STRING: ("string", (str,)),
    Atom.BOOLEAN: ("boolean", (bool,)),
    Atom.TINYINT: ("int", (int,)),
    Atom.SMALLINT: ("int", (int,)),
    Atom.INT: ("int", (int,)),
    Atom.BIGINT: ("int", (int,)),
    Atom.FLOAT: ("float", (int, float, Number)),
    Atom.DOUBLE: ("float", (int, float, Number)),
    Atom.DATE: ("date text", (str,)),
    Atom.TIMESTAMP: ("timestamp text", (str,)),
    Atom.TIMESTAMP_NTZ: ("timestamp text without a zone", (str,)),
    Atom.BINARY: ("base64 text", (str,)),
}
_DECIMAL = ("decimal", (int, float, Number, str))
_SHOWN = 40


def expected(kind: Type) -> str:
    """Say what a leaf type wants."""
    return _EXPECTED.get(kind, _DECIMAL)[0]


def shown(value: object) -> str:
    """Show a value in a reason, never more of it than a line holds."""
    text = str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def fault(kind: Type, value: Any, at: str) -> str | None:
    """Find the first fault of a JSON value, or nothing."""
    match kind, value:
        case Struct(fields), dict():
            faults = (_field_fault(field, value, f"{at}.{field.name}") for field in fields)
        case Array(element, contains_null), list():
            faults = (
                _part_fault(element, part, f"{at}[{i}]", nullable=contains_null)
                for i, part in enumerate(value)
            )
        case Map(of, contains_null), dict():
            faults = (
                _part_fault(of, part, f"{at}.{key}", nullable=contains_null)
                for key, part in value.items()
            )
        case ((Struct() | Map()), _):
            return f"expected object, got {_GOT[type(value)]}, {at}"
        case Array(), _:
            return f"expected array, got {_GOT[type(value)]}, {at}"
        case ((Atom() | Decimal()), _):
            return leaf_fault(kind, value, at)
    return next(filter(None, faults), None)


def _field_fault(field: Field, value: dict[str, Any], at: str) -> str | None:
    if field.name not in value:
        return None if field.nullable else f"missing required field, {at}"
    return _part_fault(field.type, value[field.name], at, nullable=field.nullable)


def _part_fault(kind: Type, value: Any, at: str, *, nullable: bool) -> str | None:
    return None if value is None and nullable else fault(kind, value, at)


def leaf_fault(kind: Atom | Decimal, value: Any, at: str, *, text: str | None = None) -> str | None:
    """Find the fault of a value without parts; `text` is how it was written, if that is known."""
    word, types = _EXPECTED.get(kind, _DECIMAL)
    if type(value) not in types:
        return f"expected {word}, got {_GOT[type(value)]}, {at}"
    try:
        if kind is Atom.BINARY:
            msgspec.convert(value, bytes)
        else:
            ways(kind)[1](float(value) if kind in (Atom.FLOAT, Atom.DOUBLE) else value)
    except (*UNFIT, msgspec.ValidationError):
        if isinstance(value, str) and not (isinstance(kind, Decimal) and _is_number(value)):
            return f"expected {word.removesuffix(' text')}, got {shown(value)!r}, {at}"
        return f"{shown(value if text is None else text)} does not fit {type_ddl(kind)}, {at}"
    return None


def _is_number(text: str) -> bool:
    try:
        number(text)
    except UNFIT:
        return False
    return True
