"""Schemas written as text, in Spark's DDL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from millstream.errors import MillstreamError, closest, fault
from millstream.model.data_type import MAX_PRECISION, Array, Atom, Decimal, Field, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_ddl(text: str) -> tuple[Field, ...]:
    """Read the columns of a schema.

    Raises:
        SchemaError: The text is not a schema.
    """
    return _Ddl(text).schema()


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


def distinct_fields(
    fields: Iterable[Field], *, text: str | None = None, at: int = 0
) -> tuple[Field, ...]:
    """Refuse columns of one name, and a schema without any."""
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


KNOWN_TYPES = f"types are {', '.join(a.name for a in Atom)}, DECIMAL(p,s), ARRAY, MAP, STRUCT"


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
        return distinct_fields(fields, text=self.text, at=0)

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
                f"unknown type {token.text!r}", token, fix=f"{closest(word, known)}{KNOWN_TYPES}"
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
            return Struct(distinct_fields(fields, text=self.text, at=start.offset))
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
