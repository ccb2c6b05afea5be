"""What a record looks like: named, typed columns, as Spark and Delta both write them down."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeAlias, runtime_checkable

from millstream.errors import MillstreamError, SchemaError, closest, fault

if TYPE_CHECKING:
    from collections.abc import Iterable

RESERVED_PREFIX = "_"
"""Columns that landing adds start with this; a declared column may not."""

MAX_PRECISION = 38


class Atom(Enum):
    """A type without parts: its name is Spark's SQL word, its value Spark's JSON word."""

    STRING = "string"
    BOOLEAN = "boolean"
    TINYINT = "byte"
    SMALLINT = "short"
    INT = "integer"
    BIGINT = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of at most `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Array:
    """A list of elements of one type."""

    element: Type
    contains_null: bool = True
    """False only in a StructType: DDL has no word for it."""


@dataclass(frozen=True, slots=True)
class Map:
    """Values of one type, by name."""

    value: Type
    contains_null: bool = True
    """False only in a StructType: DDL has no word for it."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A record inside a record."""

    fields: tuple[Field, ...]


Type: TypeAlias = Atom | Decimal | Array | Map | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """One column."""

    name: str
    type: Type
    nullable: bool = True


@runtime_checkable
class SparkSchema(Protocol):
    """What `pyspark.sql.types.StructType` offers and `Schema.parse` needs."""

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802
        """Return the schema as Spark's JSON."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a record, in order.

    >>> Schema.parse("vehicle STRING, at TIMESTAMP NOT NULL").names
    ('vehicle', 'at')
    """

    fields: tuple[Field, ...]

    @classmethod
    def parse(cls, value: object) -> Schema:
        """Read Spark's DDL text or a StructType; a schema is itself.

        Raises:
            SchemaError: the text is not a schema, or landing cannot hold it.
        """
        if isinstance(value, Schema):
            return value
        if isinstance(value, str):
            fields = _Ddl(value).schema()
        elif isinstance(value, SparkSchema):
            fields = _fields_from_json(value.jsonValue())
        else:
            what = f"expected DDL text or a StructType, got {type(value).__name__}"
            raise schema_fault(what, fix="give text such as 'id BIGINT, at TIMESTAMP NOT NULL'")
        for field in fields:
            if not field.name or "\0" in field.name:
                has = "a null character in its name" if field.name else "no name"
                what = f"column {field.name!r} has {has}"
                raise schema_fault(
                    what, fix='name it otherwise, and rename={field: "name"} reads it'
                )
            if field.name.startswith(RESERVED_PREFIX):
                what = f"column {field.name!r} starts with {RESERVED_PREFIX!r}"
                raise schema_fault(what, fix="rename it: such names are kept for landing's own")
        return cls(fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(field.name for field in self.fields)

    def with_nulls(self) -> Schema:
        """Allow null everywhere, in nested types too.

        >>> Schema.parse("p STRUCT<a: INT NOT NULL> NOT NULL").with_nulls().to_ddl()
        'p STRUCT<a: INT>'
        """
        return Schema(tuple(map(_with_nulls, self.fields)))

    def to_json(self) -> str:
        """Write the JSON that Spark's StructType and Delta's Schema read."""
        return json.dumps(_to_json(Struct(self.fields)))

    def to_ddl(self) -> str:
        """Write the DDL text that Spark reads.

        >>> Schema.parse("n int, tags array<string>").to_ddl()
        'n INT, tags ARRAY<STRING>'
        """
        return ", ".join(_field_ddl(field, " ") for field in self.fields)


def type_ddl(kind: Type) -> str:
    """Write one type as Spark's DDL.

    >>> type_ddl(Decimal(10, 2))
    'DECIMAL(10,2)'
    """
    match kind:
        case Atom():
            return kind.name
        case Decimal():
            return f"DECIMAL({kind.precision},{kind.scale})"
        case Array():
            return f"ARRAY<{type_ddl(kind.element)}>"
        case Map():
            return f"MAP<STRING, {type_ddl(kind.value)}>"
        case Struct():
            return f"STRUCT<{', '.join(_field_ddl(field, ': ') for field in kind.fields)}>"


def json_ddl(value: Any) -> str:
    """Write one type of Spark's JSON as DDL; one that has no word here, as it stands.

    >>> json_ddl("long"), json_ddl("interval")
    ('BIGINT', 'INTERVAL')
    """
    try:
        return type_ddl(_from_json(value))
    except SchemaError:
        return value.upper() if isinstance(value, str) else json.dumps(value)


def quoted_name(name: str) -> str:
    """Write the name of a column, whatever characters it has, as Spark reads it.

    >>> quoted_name("a.b"), quoted_name("a`b")
    ('`a.b`', '`a``b`')
    """
    return f"`{name.replace('`', '``')}`"


def _field_ddl(field: Field, between: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", field.name)
    name = field.name if plain else quoted_name(field.name)
    return f"{name}{between}{type_ddl(field.type)}{'' if field.nullable else ' NOT NULL'}"


def _with_nulls(field: Field) -> Field:
    return Field(field.name, _type_with_nulls(field.type))


def _type_with_nulls(kind: Type) -> Type:
    match kind:
        case Array():
            return Array(_type_with_nulls(kind.element))
        case Map():
            return Map(_type_with_nulls(kind.value))
        case Struct():
            return Struct(tuple(map(_with_nulls, kind.fields)))
        case _:
            return kind


def _to_json(kind: Type) -> str | dict[str, Any]:
    match kind:
        case Atom():
            return kind.value
        case Decimal():
            return f"decimal({kind.precision},{kind.scale})"
        case Array():
            element = _to_json(kind.element)
            return {"type": "array", "elementType": element, "containsNull": kind.contains_null}
        case Map():
            return {
                "type": "map",
                "keyType": "string",
                "valueType": _to_json(kind.value),
                "valueContainsNull": kind.contains_null,
            }
        case Struct():
            fields = [
                {"name": f.name, "type": _to_json(f.type), "nullable": f.nullable, "metadata": {}}
                for f in kind.fields
            ]
            return {"type": "struct", "fields": fields}


def _from_json(value: Any) -> Type:
    match value:
        case {"type": "array", "elementType": element, "containsNull": contains_null}:
            return Array(_from_json(element), contains_null)
        case {"type": "map", "keyType": "string", "valueType": of, "valueContainsNull": null}:
            return Map(_from_json(of), null)
        case {"type": "struct"}:
            return Struct(_fields_from_json(value))
        case str() if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", value):
            return Decimal(int(decimal[1]), int(decimal[2]))
        case str() if value in _BY_JSON_NAME:
            return _BY_JSON_NAME[value]
    what = f"type {value!r} is not supported"
    raise schema_fault(what, fix=_KNOWN_TYPES)


def _fields_from_json(value: dict[str, Any]) -> tuple[Field, ...]:
    fields = (Field(f["name"], _from_json(f["type"]), f["nullable"]) for f in value["fields"])
    return _distinct(fields)


def schema_fault(
    what: str, *, fix: str, text: str | None = None, offset: int | None = None
) -> MillstreamError:
    """Refuse a schema; with its text, name the place in it."""
    where = ""
    if text is not None and offset is not None:
        near = text[offset : offset + 24]
        place = f"character {offset + 1}, near {near!r}" if near.strip() else "its end"
        where = f" (in the schema text, at {place})"
    return fault("SCHEMA", what=what, where=where, fix=fix)


def _distinct(
    fields: Iterable[Field], *, text: str | None = None, at: int = 0
) -> tuple[Field, ...]:
    seen: dict[str, Field] = {}
    for field in fields:
        # Spark resolves names without regard to case, so 'a' and 'A' are one column.
        first = seen.setdefault(field.name.lower(), field)
        if first is not field:
            what = f"columns {first.name!r} and {field.name!r} have the same name"
            fix = "rename one: Spark ignores upper and lower case"
            raise schema_fault(what, fix=fix, text=text, offset=at)
    if not seen:
        what = "a schema without columns"
        fix = "name at least one column, such as 'id BIGINT'"
        raise schema_fault(what, fix=fix, text=text, offset=at)
    return tuple(seen.values())


_BY_JSON_NAME = {atom.value: atom for atom in Atom}
_BY_WORD = {
    **{atom.name: atom for atom in Atom},
    "BYTE": Atom.TINYINT,
    "SHORT": Atom.SMALLINT,
    "INTEGER": Atom.INT,
    "LONG": Atom.BIGINT,
    "REAL": Atom.FLOAT,
    "TIMESTAMP_LTZ": Atom.TIMESTAMP,
}
_DECIMAL_WORDS = ("DECIMAL", "DEC", "NUMERIC")
_KNOWN_TYPES = f"types are {', '.join(a.name for a in Atom)}, DECIMAL(p,s), ARRAY, MAP, STRUCT"
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<word>\w+)|(?P<mark>[<>(),:])
    |(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<end>\Z)|(?P<stray>.))""",
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


class _Ddl:
    """A recursive-descent reader of Spark's DDL."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            _Token(kind, match[kind], match.start(kind))
            for match in _TOKEN.finditer(text)
            if (kind := match.lastgroup)
        ]
        self.at = 0

    def schema(self) -> tuple[Field, ...]:
        fields = [] if self.peek.kind == "end" else self.fields()
        if self.peek.kind != "end":
            self.expected("',' or the end")
        return _distinct(fields, text=self.text, at=0)

    def fields(self) -> list[Field]:
        fields = [self.field()]
        while self.take(","):
            fields.append(self.field())
        return fields

    def field(self) -> Field:
        name = self.peek
        if name.kind not in ("word", "quoted"):
            self.expected("a column name")
        self.at += 1
        self.take(":")
        kind = self.type()
        nullable = not self.take("NOT")
        if not nullable:
            self.need("NULL")
        if self.take("COMMENT"):
            if self.peek.kind != "text":
                self.expected("the comment in quotes")
            while self.peek.kind == "text":
                self.at += 1
        plain = name.text[1:-1].replace("``", "`") if name.kind == "quoted" else name.text
        return Field(plain, kind, nullable)

    def type(self) -> Type:
        token = self.peek
        if token.kind != "word":
            self.expected("a type")
        self.at += 1
        word = token.text.upper()
        if word in _DECIMAL_WORDS:
            return self.decimal(token)
        if word in _BY_WORD:
            return _BY_WORD[word]
        if word not in ("ARRAY", "MAP", "STRUCT"):
            known = (*_BY_WORD, *_DECIMAL_WORDS, "ARRAY", "MAP", "STRUCT")
            self.error(
                f"unknown type {token.text!r}", token, fix=f"{closest(word, known)}{_KNOWN_TYPES}"
            )
        self.need("<")
        nested = self.nested(word)
        self.need(">")
        return nested

    def nested(self, word: str) -> Type:
        start = self.peek
        if word == "ARRAY":
            return Array(self.type())
        if word == "STRUCT":
            fields = [] if start.text == ">" else self.fields()
            return Struct(_distinct(fields, text=self.text, at=start.offset))
        if self.type() is not Atom.STRING:
            self.error("a MAP key that is not STRING", start, fix="use MAP<STRING, ...>")
        self.need(",")
        return Map(self.type())

    def decimal(self, token: _Token) -> Decimal:
        precision, scale = 10, 0
        if self.take("("):
            precision = self.number()
            scale = self.number() if self.take(",") else 0
            self.need(")")
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            fix = f"use a precision of 1 to {MAX_PRECISION} and a scale no greater than it"
            self.error(f"DECIMAL({precision},{scale}) does not exist", token, fix=fix)
        return Decimal(precision, scale)

    def number(self) -> int:
        token = self.peek
        if not (token.text.isascii() and token.text.isdigit()):
            self.expected("a number")
        self.at += 1
        return int(token.text)

    @property
    def peek(self) -> _Token:
        return self.tokens[self.at]

    def take(self, text: str) -> bool:
        found = self.peek.kind in ("word", "mark") and self.peek.text.upper() == text
        self.at += found
        return found

    def need(self, text: str) -> None:
        if not self.take(text):
            self.expected(repr(text))

    def expected(self, what: str) -> NoReturn:
        got = repr(self.peek.text) if self.peek.text else "nothing"
        fix = "write columns as 'name TYPE [NOT NULL]', separated by commas"
        self.error(f"expected {what}, got {got}", self.peek, fix=fix)

    def error(self, what: str, token: _Token, *, fix: str) -> NoReturn:
        raise schema_fault(what, fix=fix, text=self.text, offset=token.offset)
