"""How the JSON of an Avro schema is read."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn, TypeVar

from millstream.model.avro.kind import (
    NO_DEFAULT,
    PRIMITIVES,
    AvroField,
    AvroReference,
    AvroSchema,
    AvroTextError,
    AvroType,
    Definition,
    Dictionary,
    Enumeration,
    Fixed,
    Logical,
    Primitive,
    Record,
    Sequence,
    Union,
)
from millstream.model.data_type import MAX_PRECISION

_LOGICAL = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
    "decimal": ("bytes", "fixed"),
}
_UUID_BYTES = 16
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_D = TypeVar("_D", Fixed, Enumeration, Record)


def parse_avro(text: str, origin: str = "given") -> AvroSchema:
    """Read a schema; it must be a record.

    >>> text = '{"type": "record", "name": "Tick", "fields": [{"name": "n", "type": "int"}]}'
    >>> [part.name for part in parse_avro(text).root.parts]
    ['n']

    Raises:
        AvroTextError: It is none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"not JSON: {error}"
        raise AvroTextError(why) from None
    parser = _Parser()
    root = parser.type(value, "", "the schema")
    if not isinstance(root, Record):
        _refuse(f"the schema is {root}, not a record")
    return AvroSchema(text, root, parser.names, origin)


class _Parser:
    """Remembers the names that are defined."""

    def __init__(self) -> None:
        self.names: dict[str, Definition] = {}
        self._open: set[str] = set()

    def type(self, value: Any, space: str, at: str) -> AvroType:  # noqa: PLR0911 - a return each
        match value:
            case str():
                return self._word(value, space, at)
            case list():
                return self._union(value, space, at)
            case {"type": "record" | "error"}:
                return self._record(value, space, at)
            case {"type": "enum"}:
                return self._enumeration(value, space, at)
            case {"type": "fixed"}:
                return self._fixed(value, space, at)
            case {"type": "array"}:
                return Sequence(self.type(_need(value, "items", at), space, f"items of {at}"))
            case {"type": "map"}:
                return Dictionary(self.type(_need(value, "values", at), space, f"values of {at}"))
            case {"type": str() as word} if word in PRIMITIVES:
                return Primitive(word, _logical(value, word))
            case {"type": (str() | list() | dict()) as inner}:
                return self.type(inner, space, at)
        return _refuse(f"{at} has no type")

    def _word(self, word: str, space: str, at: str) -> AvroType:
        if word in PRIMITIVES:
            return Primitive(word)
        for name in (_full(word, space), word):
            if name in self._open or name in self.names:
                return AvroReference(name)
        return _refuse(f"{at} has the type {word!r}, which does not exist")

    def _union(self, value: list[Any], space: str, at: str) -> Union:
        branches = tuple(self.type(branch, space, f"a branch of {at}") for branch in value)
        if not branches or any(isinstance(branch, Union) for branch in branches):
            _refuse(f"{at} is a union without branches or of unions")
        return Union(branches)

    def _record(self, value: dict[str, Any], space: str, at: str) -> Record:
        name, below, aliases = self._name(value, space, at)
        self._open.add(name)
        parts = [self._part(part, below, name) for part in _need(value, "fields", at, list)]
        if len({part.name for part in parts}) < len(parts):
            _refuse(f"record {name!r} has two fields of one name")
        return self._defined(Record(name, tuple(parts), aliases=aliases))

    def _part(self, value: Any, space: str, record: str) -> AvroField:
        if not isinstance(value, dict):
            _refuse(f"a field of {record!r} is {json.dumps(value)}")
        name = _need(value, "name", f"a field of {record!r}", str)
        at = f"field {name!r} of {record!r}"
        kind = self.type(_need(value, "type", at), space, at)
        aliases = tuple(value.get("aliases", ()))
        return AvroField(name, kind, value.get("default", NO_DEFAULT), aliases)

    def _enumeration(self, value: dict[str, Any], space: str, at: str) -> Enumeration:
        name, _, aliases = self._name(value, space, at)
        symbols = tuple(_need(value, "symbols", at, list))
        default = value.get("default")
        if default is not None and default not in symbols:
            _refuse(f"the default of enum {name!r}, {default!r}, is none of its symbols")
        return self._defined(Enumeration(name, symbols, default, aliases=aliases))

    def _fixed(self, value: dict[str, Any], space: str, at: str) -> Fixed:
        name, _, aliases = self._name(value, space, at)
        size = _need(value, "size", at, int)
        return self._defined(Fixed(name, size, _logical(value, "fixed", size), aliases=aliases))

    def _name(self, value: dict[str, Any], space: str, at: str) -> tuple[str, str, tuple[str, ...]]:
        """Return the full name, the namespace below it, and the full aliases."""
        name = _full(_need(value, "name", at, str), value.get("namespace", space))
        if not _NAME.fullmatch(name):
            _refuse(f"{at} has the name {name!r}")
        if name in self.names or name in self._open:
            _refuse(f"{name!r} is defined twice")
        below = name.rpartition(".")[0]
        return name, below, tuple(_full(alias, below) for alias in value.get("aliases", ()))

    def _defined(self, kind: _D) -> _D:
        self.names[kind.name] = kind
        return kind


def _full(name: str, space: str | None) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _logical(value: dict[str, Any], word: str, size: int = 0) -> Logical | None:
    """Find the logical type; one that is unknown or out of place is passed over, says Avro."""
    name = value.get("logicalType")
    if not isinstance(name, str) or word not in _LOGICAL.get(name, ()):
        return None
    if name == "uuid" and word == "fixed" and size != _UUID_BYTES:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = value.get("precision"), value.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return None
    is_right = 0 <= scale <= precision and 1 <= precision <= MAX_PRECISION
    return Logical(name, precision, scale) if is_right else None


def _need(value: dict[str, Any], key: str, at: str, kind: type = object) -> Any:
    if key not in value:
        _refuse(f"{at} has no {key!r}")
    # A boolean is an integer to Python.
    if not isinstance(value[key], kind) or (kind is int and type(value[key]) is not int):
        _refuse(f"{at} has {key!r}: {json.dumps(value[key])}")
    return value[key]


def _refuse(why: str) -> NoReturn:
    raise AvroTextError(why)
