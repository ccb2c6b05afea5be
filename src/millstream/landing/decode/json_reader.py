"""How JSON objects are read, strictly and by type."""

from __future__ import annotations

import json
import math
import numbers
import re
from decimal import Decimal as Number
from operator import attrgetter
from types import GenericAlias
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.landing.decode.column import attribute, number, text_leaf
from millstream.landing.decode.fault import fault, shown
from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct, Type
from millstream.model.ddl import schema_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.landing.decode.time_column import TimeColumn
    from millstream.model.schema import Schema

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


_ANY_TIME = "1970-01-01"
_UNNAMEABLE = re.compile(r'["\\\x00-\x1f]')
"""What msgspec's structs cannot have in the name of a field."""


class JsonReader:
    """Reads JSON objects into msgspec structs."""

    is_text = True
    leaf = staticmethod(text_leaf)

    def __init__(self, schema: Schema, times: Mapping[str, TimeColumn]) -> None:
        self._kind = Struct(schema.fields)
        self._times = {name: time for name, time in times.items() if name in schema.names}
        numbers = [name for name, time in self._times.items() if time.takes_numbers]
        row = _struct_type(self._kind, numbers)
        names = [attribute(i) for i in range(len(schema.fields))]
        self.blank = row(**dict.fromkeys(names))
        self.getters = [attrgetter(name) for name in names]
        self.read = msgspec.json.Decoder(row, float_hook=_float, dec_hook=_number).decode

    def fault(self, raw: bytes) -> str | None:
        """Say what is wrong, and where."""
        try:
            value = any_decoder()(raw)
            times = self._time_fault(value) if isinstance(value, dict) else None
            return fault(self._kind, value, "at $") or times or _duplicate_field(raw)
        except RecursionError:
            return "not JSON: nested too deeply"
        except msgspec.DecodeError as error:
            text = str(error).removeprefix("JSON is malformed: ").partition(" - at ")[0]
            return f"not JSON: {text[:1].lower()}{text[1:]}"

    def _time_fault(self, value: dict[str, Any]) -> str | None:
        """Find a time that no format fits; all are made such that their types fit."""
        found = None
        for name, time in self._times.items():
            if value.get(name) is not None:
                found = found or time.fault(value[name], f"at $.{name}")
                value[name] = _ANY_TIME
        return found


def is_plain_name(name: str) -> bool:
    """Return whether a struct can have a field of this name.

    >>> is_plain_name("a.b"), is_plain_name('a"b')
    (True, False)
    """
    return _UNNAMEABLE.search(name) is None


def decoder_of(field: Field, *, takes_numbers: bool = False) -> Callable[[Any], Any]:
    """Make the function that reads the value of one field."""
    of = int | float | str if takes_numbers else _type(field.type)
    kind = of | None if field.nullable else of
    return msgspec.json.Decoder(kind, float_hook=_float, dec_hook=_number).decode


def any_decoder() -> Callable[[Any], Any]:
    """Make the function that reads any JSON."""
    return msgspec.json.Decoder(float_hook=_float).decode


def _duplicate_field(raw: bytes) -> str | None:
    """Name a field that an object has twice: the last one counts, but the first must fit too."""
    twice: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        twice.extend(name for name in names if names.count(name) > 1)

    json.loads(raw, object_pairs_hook=collect)
    return f"field {shown(twice[0])!r} is there twice, and not each fits" if twice else None


def _struct_type(kind: Struct, numbers: Sequence[str] = ()) -> type[msgspec.Struct]:
    """Make the class of records; some fields of it may be numbers as well as texts."""
    names = {attribute(i): field.name for i, field in enumerate(kind.fields)}
    if (unfit := next((n for n in names.values() if not is_plain_name(n)), None)) is not None:
        what = (
            f"field {unfit!r} of a STRUCT has a quote, backslash or control character in its name"
        )
        raise schema_fault(what, fix="declare MAP<STRING, …> in place of the STRUCT")
    fields: list[str | tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, field in zip(names, kind.fields, strict=True):
        of = int | float | str if field.name in numbers else _type(field.type)
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
