"""Spark's types: how Delta writes them, what DuckDB calls them, which one two have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_DUCK = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "interval": "INTERVAL",
    "void": '"NULL"',
}
_DELTA = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_WIDEST = 38

INTEGRAL = tuple(_DIGITS)
NUMERIC = (*INTEGRAL, "decimal", "float", "double")
TEMPORAL = ("date", "timestamp", "timestamp_ntz")
ORDERED = (*NUMERIC, *TEMPORAL, "string", "boolean", "void")


@dataclass(frozen=True, slots=True)
class Type:
    """A type of Spark's; of nested ones also what they are made of."""

    kind: str
    precision: int = 0
    scale: int = 0
    parts: tuple[tuple[str, Type], ...] = ()
    """Fields of a struct; `element` of an array; `key` and `value` of a map."""

    @staticmethod
    def of_delta(written: Any) -> Type:
        """Read a type as Delta and Spark write it in JSON."""
        if isinstance(written, str):
            if sizes := re.fullmatch(r"decimal\((\d+),\s*(-?\d+)\)", written):
                return decimal(int(sizes[1]), int(sizes[2]))
            return Type(_DELTA.get(written, written))
        of = Type.of_delta
        if written["type"] == "struct":
            return Type(
                "struct", parts=tuple((f["name"], of(f["type"])) for f in written["fields"])
            )
        if written["type"] == "array":
            return array(of(written["elementType"]))
        return Type(
            "map", parts=(("key", of(written["keyType"])), ("value", of(written["valueType"])))
        )

    def __getitem__(self, part: str) -> Type:
        return dict(self.parts)[part]

    @property
    def is_known(self) -> bool:
        """Whether DuckDB has it too."""
        known = self.kind in _DUCK or self.kind in ("decimal", "struct", "array", "map")
        return known and all(part.is_known for _, part in self.parts)

    @property
    def is_numeric(self) -> bool:
        """Whether it is a number."""
        return self.kind in NUMERIC

    @property
    def duck(self) -> str:
        """What DuckDB calls it."""
        if self.kind == "decimal":
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.kind == "array":
            return f"{self['element'].duck}[]"
        if self.kind == "map":
            return f"MAP({self['key'].duck}, {self['value'].duck})"
        if self.kind == "struct":
            return (
                f"STRUCT({', '.join(f'{quoted(name)} {part.duck}' for name, part in self.parts)})"
            )
        return _DUCK[self.kind]

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.kind == "struct":
            return f"struct<{','.join(f'{name}:{part}' for name, part in self.parts)}>"
        return self.kind + (
            f"<{','.join(str(part) for _, part in self.parts)}>" if self.parts else ""
        )


BOOLEAN, INT, BIGINT, DOUBLE = Type("boolean"), Type("int"), Type("bigint"), Type("double")
STRING, DATE, TIMESTAMP, VOID = Type("string"), Type("date"), Type("timestamp"), Type("void")


def quoted(name: str) -> str:
    """Write an identifier for DuckDB.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def string_literal(text: str) -> str:
    """Write a string for DuckDB.

    >>> string_literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def decimal(precision: int, scale: int) -> Type:
    """Return a decimal type."""
    return Type("decimal", precision, scale)


def array(element: Type) -> Type:
    """Return an array type."""
    return Type("array", parts=(("element", element),))


def struct(*fields: tuple[str, Type]) -> Type:
    """Return a struct type."""
    return Type("struct", parts=fields)


def as_decimal(kind: Type) -> Type:
    """Return the decimal type that holds every value of a whole-number type."""
    return kind if kind.kind == "decimal" else decimal(_DIGITS[kind.kind], 0)


def bounded(precision: int, scale: int) -> Type:
    """Return a decimal type of at most 38 digits by Spark's rule: whole digits first, then six.

    >>> str(bounded(40, 10)), str(bounded(60, 20))
    ('decimal(38,8)', 'decimal(38,6)')
    """
    if precision <= _WIDEST:
        return decimal(precision, scale)
    return decimal(_WIDEST, max(_WIDEST - (precision - scale), min(scale, 6)))


def arithmetic_type(operator: str, left: Type, right: Type) -> Type:
    """Return the decimal type of `left operator right`.

    >>> str(arithmetic_type("/", decimal(10, 2), decimal(10, 2)))
    'decimal(23,13)'
    """
    whole, scale = left.precision - left.scale, max(left.scale, right.scale)
    if operator == "*":
        return bounded(left.precision + right.precision + 1, left.scale + right.scale)
    if operator == "/":
        scale = max(6, left.scale + right.precision + 1)
        return bounded(whole + right.scale + scale, scale)
    other = right.precision - right.scale
    if operator == "%":
        return bounded(min(whole, other) + scale, scale)
    return bounded(max(whole, other) + scale + 1, scale)


def common(types: Iterable[Type]) -> Type | None:
    """Return the type that Spark turns all of these into; None if we know of none.

    >>> str(common([INT, BIGINT])), str(common([INT, decimal(4, 2)])), common([INT, STRING])
    ('bigint', 'decimal(12,2)', None)
    """
    found: Type | None = VOID
    for kind in types:
        found = _wider(found, kind) if found else None
    return found


def _wider(one: Type, other: Type) -> Type | None:  # noqa: PLR0911
    if one == other or other.kind == "void":
        return one
    if one.kind == "void":
        return other
    if one.is_numeric and other.is_numeric:
        return _wider_number(one, other)
    kinds = {one.kind, other.kind}
    if kinds <= set(TEMPORAL):
        return Type("timestamp" if "timestamp" in kinds else "timestamp_ntz")
    if "string" in kinds and kinds & {*TEMPORAL, "boolean"}:
        return one if other.kind == "string" else other
    if one.kind != other.kind or one.kind not in ("array", "struct", "map"):
        return None
    if [name for name, _ in one.parts] != [name for name, _ in other.parts]:
        return None
    parts = [common((a, b)) for (_, a), (_, b) in zip(one.parts, other.parts, strict=True)]
    named = tuple((n, p) for (n, _), p in zip(one.parts, parts, strict=True) if p)
    return replace(one, parts=named) if len(named) == len(parts) else None


def _wider_number(one: Type, other: Type) -> Type | None:
    kinds = {one.kind, other.kind}
    if kinds & {"float", "double"}:
        return DOUBLE
    if kinds <= set(INTEGRAL):
        return max(one, other, key=lambda kind: _DIGITS[kind.kind])
    one, other = as_decimal(one), as_decimal(other)
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return decimal(whole + scale, scale) if whole + scale <= _WIDEST else None
