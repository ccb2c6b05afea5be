"""How JSON objects are read, strictly and by type."""

from __future__ import annotations

import json
import math
import numbers
from decimal import Decimal as Number
from operator import attrgetter
from types import GenericAlias
from typing import Any

import msgspec

from millstream.landing.decode.column import attribute, number, written_leaf
from millstream.landing.decode.fault import fault, shown
from millstream.model.schema import Array, Atom, Decimal, Map, Schema, Struct, Type

_ATOMS: dict[Atom, type] = {
    Atom.STRING: str,
    Atom.BOOLEAN: bool,
    Atom.TINYINT: int,
    Atom.SMALLINT: int,
    Atom.INT: int,
    Atom.BIGINT: int,
    Atom.FLOAT: float,
    Atom.DOUBLE: float,
    Atom.DATE: str,
    Atom.TIMESTAMP: str,
    Atom.TIMESTAMP_NTZ: str,
    Atom.BINARY: bytes,
}


class JsonReader:
    """Reads JSON objects into msgspec structs."""

    is_text = True
    leaf = staticmethod(written_leaf)

    def __init__(self, schema: Schema) -> None:
        self._kind = Struct(schema.fields)
        row = _struct_type(self._kind)
        names = [attribute(i) for i in range(len(schema.fields))]
        self.blank = row(**dict.fromkeys(names))
        self.getters = [attrgetter(name) for name in names]
        self.read = msgspec.json.Decoder(row, float_hook=_float, dec_hook=_number).decode

    def fault(self, raw: bytes) -> str | None:
        """Say what is wrong, and where."""
        try:
            value = msgspec.json.Decoder(float_hook=_float).decode(raw)
            return fault(self._kind, value, "at $") or _given_twice(raw)
        except RecursionError:
            return "not JSON: nested too deeply"
        except msgspec.DecodeError as error:
            text = str(error).removeprefix("JSON is malformed: ").partition(" - at ")[0]
            return f"not JSON: {text[:1].lower()}{text[1:]}"


def _given_twice(raw: bytes) -> str | None:
    """Name a field that an object has twice: the last one counts, but the first must fit too."""
    twice: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        twice.extend(name for name in names if names.count(name) > 1)

    json.loads(raw, object_pairs_hook=note)
    return f"field {shown(twice[0])!r} is there twice, and not each fits" if twice else None


def _struct_type(kind: Struct) -> type[msgspec.Struct]:
    names = {attribute(i): field.name for i, field in enumerate(kind.fields)}
    fields: list[str | tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, field in zip(names, kind.fields, strict=True):
        of = _type(field.type)
        fields.append((name, of | None, None) if field.nullable else (name, of))
    return msgspec.defstruct("Record", fields, rename=names, kw_only=True, gc=False)


def _type(kind: Type) -> Any:
    match kind:
        case Atom():
            return _ATOMS[kind]
        case Decimal():
            # msgspec's own reading of Decimal takes "1_0" and "NaN"; this goes through _number.
            return numbers.Number
        case Array():
            element = _type(kind.element)
            return GenericAlias(list, (element | None if kind.contains_null else element,))
        case Map():
            value = _type(kind.value)
            return GenericAlias(dict, (str, value | None if kind.contains_null else value))
        case Struct():
            return _struct_type(kind)


def _float(text: str) -> Number | float:
    try:
        return Number(text)
    except ArithmeticError:
        return math.inf


def _number(_: type, value: Any) -> Number | int:
    if isinstance(value, str):
        return number(value)
    if type(value) not in (Number, int):
        raise TypeError(value)
    return value  # type: ignore[no-any-return]
