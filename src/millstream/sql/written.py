"""What is written out in a query: texts, numbers, spans of time and types."""

from __future__ import annotations

import re

from sqlglot import exp

from millstream.sql.refusal import refuse
from millstream.sql.scope import Typed
from millstream.sql.types import DOUBLE, INT, STRING, Type, array, decimal

_NAMES = {"varchar": "string", "char": "string", "text": "string", "timestamptz": "timestamp",
          "timestampltz": "timestamp", "timestampntz": "timestamp_ntz"}  # fmt: skip
_DAY_TIME = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400,
             "millisecond": 1e-3, "microsecond": 1e-6}  # fmt: skip
_LITERAL_INT, _LITERAL_BIGINT = 2**31, 2**63


def literal(node: exp.Literal) -> Typed:
    """Translate a text or a number."""
    said = str(node.this)
    if node.is_string:
        return Typed("'" + said.replace("'", "''") + "'", STRING, said)
    if re.fullmatch(r"\d+", said):
        number = int(said)
        if number < _LITERAL_BIGINT:
            kind = INT if number < _LITERAL_INT else Type("bigint")
            return Typed(f"CAST({number} AS {kind.duck})", kind, number)
    elif "e" in said.lower():
        return Typed(f"CAST({said} AS DOUBLE)", DOUBLE)
    digits = said.replace(".", "").lstrip("0")
    scale = len(said.partition(".")[2])
    kind = decimal(max(len(digits), scale, 1), scale)
    return Typed(f"CAST('{said}' AS {kind.duck})", kind)


def interval(node: exp.Interval) -> Typed:
    """Translate a span of time."""
    unit = node.unit.name.lower().removesuffix("s") if isinstance(node.unit, exp.Var) else ""
    amount = node.this
    if not isinstance(amount, exp.Literal) or not re.fullmatch(r"-?\d+(\.\d+)?", amount.name):
        refuse(node)
    if unit in ("month", "year", "quarter") and "." not in amount.name:
        months = int(amount.name) * {"month": 1, "quarter": 3, "year": 12}[unit]
        return Typed(f"to_months({months})", Type("interval month"))
    if unit not in _DAY_TIME or ("." in amount.name and unit != "second"):
        refuse(node)
    micros = round(float(amount.name) * _DAY_TIME[unit] * 1_000_000)
    whole_days = unit in ("day", "week")
    return Typed(f"to_microseconds({micros})", Type("interval"), "days" if whole_days else None)


def type_of(written: exp.DataType) -> Type | None:
    """Read a type as SQL writes it; None if we have none such."""
    if not isinstance(written.this, exp.DataType.Type):
        return None
    if written.args.get("collate") or written.args.get("nullable"):
        return None
    name = _NAMES.get(written.this.value.lower(), written.this.value.lower())
    if name == "array" and len(written.expressions) == 1:
        element = type_of(written.expressions[0])
        return array(element) if element else None
    sizes = [size.name for size in written.expressions]
    if len(sizes) > (2 if name == "decimal" else 0) or not all(size.isdecimal() for size in sizes):
        return None
    if name == "decimal":
        precision, scale = map(int, [*sizes, *("10", "0")[len(sizes) :]])
        return decimal(precision, scale)
    kind = Type(name)
    return kind if kind.is_known and name not in ("struct", "map", "array", "interval") else None
