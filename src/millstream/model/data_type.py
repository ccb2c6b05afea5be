"""The types of columns, and how Spark's SQL writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

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
            return f"STRUCT<{', '.join(field_ddl(field, ': ') for field in kind.fields)}>"


def quoted_name(name: str) -> str:
    """Write the name of a column, whatever characters it has, as Spark reads it.

    >>> quoted_name("a.b"), quoted_name("a`b")
    ('`a.b`', '`a``b`')
    """
    return f"`{name.replace('`', '``')}`"


def field_ddl(field: Field, between: str) -> str:
    """Write a column, with what stands between its name and its type."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", field.name)
    name = field.name if plain else quoted_name(field.name)
    return f"{name}{between}{type_ddl(field.type)}{'' if field.nullable else ' NOT NULL'}"
