"""Literals of a query: strings, numbers, intervals, and the names of types."""

from __future__ import annotations

import re

from sqlglot import exp

from millstream.sql.refusal import refuse
from millstream.sql.scope import TypedSql
from millstream.sql.types import DOUBLE, INT, STRING, Type, array, decimal

_NAMES = {"varchar": "string", "char": "string", "text": "string", "timestamptz": "timestamp",
          "timestampltz": "timestamp", "timestampntz": "timestamp_ntz"}  # fmt: skip
_DAY_TIME = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400,
             "millisecond": 1e-3, "microsecond": 1e-6}  # fmt: skip
_LITERAL_INT, _LITERAL_BIGINT = 2**31, 2**63


def translate_literal(node: exp.Literal) -> TypedSql:
    """Translate a string or a number."""
    text = str(node.this)
    if node.is_string:
        return TypedSql("'" + text.replace("'", "''") + "'", STRING, text)
    if re.fullmatch(r"\d+", text):
        number = int(text)
        if number < _LITERAL_BIGINT:
            kind = INT if number < _LITERAL_INT else Type("bigint")
            return TypedSql(f"CAST({number} AS {kind.duck})", kind, number)
    elif "e" in text.lower():
        return TypedSql(f"CAST({text} AS DOUBLE)", DOUBLE)
    digits = text.replace(".", "").lstrip("0")
    scale = len(text.partition(".")[2])
    kind = decimal(max(len(digits), scale, 1), scale)
    return TypedSql(f"CAST('{text}' AS {kind.duck})", kind)


def translate_interval(node: exp.Interval) -> TypedSql:
    """Translate an interval."""
    unit = node.unit.name.lower().removesuffix("s") if isinstance(node.unit, exp.Var) else ""
    amount = node.this
    if not isinstance(amount, exp.Literal) or not re.fullmatch(r"-?\d+(\.\d+)?", amount.name):
        refuse(node)
    if unit in ("month", "year", "quarter") and "." not in amount.name:
        months = int(amount.name) * {"month": 1, "quarter": 3, "year": 12}[unit]
        return TypedSql(f"to_months({months})", Type("interval month"))
    if unit not in _DAY_TIME or ("." in amount.name and unit != "second"):
        refuse(node)
    micros = round(float(amount.name) * _DAY_TIME[unit] * 1_000_000)
    whole_days = unit in ("day", "week")
    return TypedSql(f"to_microseconds({micros})", Type("interval"), "days" if whole_days else None)


def type_of(node: exp.DataType) -> Type | None:
    """Read a type as SQL writes it; None if it is not known."""
    if not isinstance(node.this, exp.DataType.Type):
        return None
    if node.args.get("collate") or node.args.get("nullable"):
        return None
    name = _NAMES.get(node.this.value.lower(), node.this.value.lower())
    if name == "array" and len(node.expressions) == 1:
        element = type_of(node.expressions[0])
        return array(element) if element else None
    sizes = [size.name for size in node.expressions]
    if len(sizes) > (2 if name == "decimal" else 0) or not all(size.isdecimal() for size in sizes):
        return None
    if name == "decimal":
        precision, scale = map(int, [*sizes, *("10", "0")[len(sizes) :]])
        return decimal(precision, scale)
    kind = Type(name)
    return kind if kind.is_known and name not in ("struct", "map", "array", "interval") else None
