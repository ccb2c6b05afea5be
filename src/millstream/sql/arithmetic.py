"""Arithmetic as Spark does it: on numbers, decimals, timestamps and intervals.

A decimal result gets the type of Spark's rule; halves are rounded away from zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.sql.refusal import refuse
from millstream.sql.scope import TypedSql
from millstream.sql.types import DOUBLE, TEMPORAL, VOID, Type, arithmetic_type, as_decimal, decimal

if TYPE_CHECKING:
    from sqlglot import exp

    from millstream.sql.expression import Expressions


def translate_arithmetic(
    expressions: Expressions, sign: str, left: TypedSql, right: TypedSql, node: exp.Expr
) -> TypedSql:
    """Add, subtract, multiply or divide."""
    if "interval" in left.type.kind + right.type.kind or {left.type.kind, right.type.kind} & {
        *TEMPORAL
    }:
        return _shift(expressions, sign, left, right, node)
    if VOID in (left.type, right.type) or not (left.type.is_numeric and right.type.is_numeric):
        refuse(node, f"{left.type} {sign} {right.type}")
    kinds = {left.type.kind, right.type.kind}
    if "decimal" in kinds and not kinds & {"float", "double"}:
        return _decimal_arithmetic(sign, _to_decimal(left), _to_decimal(right))
    (one, other), kind = expressions.alike([left, right], node)
    if sign == "/":
        one, other = (expressions.to(v, DOUBLE, node) for v in (left, right))
        return TypedSql(f"divided({one}, {other})", DOUBLE)
    if sign == "%":
        return TypedSql(f"remainder({one}, {other})", kind)
    return TypedSql(f"({one} {sign} {other})", kind)


def _shift(
    expressions: Expressions, sign: str, left: TypedSql, right: TypedSql, node: exp.Expr
) -> TypedSql:
    """Add or subtract dates, timestamps and intervals."""
    kinds = (left.type.kind, right.type.kind)
    if sign == "+" and kinds[0].startswith("interval") and kinds[1] in TEMPORAL:
        return _shift(expressions, sign, right, left, node)
    if kinds == ("interval", "interval") and sign in "+-":
        both = "days" if left.literal and right.literal else None
        return TypedSql(f"({left.text} {sign} {right.text})", left.type, both)
    if sign in "+-" and kinds[0] in TEMPORAL and kinds[1].startswith("interval"):
        kind = left.type
        if kind.kind == "date" and kinds[1] == "interval" and right.literal != "days":
            left = TypedSql(expressions.to(left, Type("timestamp"), node), Type("timestamp"))
            kind = left.type
        return TypedSql(f"CAST({left.text} {sign} {right.text} AS {kind.duck})", kind)
    if sign in "+-" and kinds[0] == "date" and kinds[1] in ("int", "smallint", "tinyint"):
        return TypedSql(f"({left.text} {sign} {right.text})", left.type)
    if sign == "-" and set(kinds) <= {"timestamp"}:
        return TypedSql(f"({left.text} - {right.text})", Type("interval"))
    return refuse(node, f"{left.type} {sign} {right.type}")


def _to_decimal(value: TypedSql) -> TypedSql:
    """Cast a whole number to a decimal; a literal gets as many digits as are written."""
    kind = as_decimal(value.type)
    if isinstance(value.literal, int):
        kind = decimal(len(str(abs(value.literal))), 0)
    return TypedSql(f"CAST({value.text} AS {kind.duck})", kind)


def _decimal_arithmetic(sign: str, left: TypedSql, right: TypedSql) -> TypedSql:
    """Add, subtract, multiply or divide decimals."""
    kind = arithmetic_type(sign, left.type, right.type)
    if sign == "/":
        return quotient(left, right, kind)
    text = f"({left.text} {sign} {right.text})"
    if sign == "%":
        text = f"remainder({left.text}, {right.text})"
    return TypedSql(f"CAST({text} AS {kind.duck})", kind)


def quotient(left: TypedSql, right: TypedSql, kind: Type) -> TypedSql:
    """Divide decimals, in whole numbers."""
    shift = kind.scale - left.type.scale + right.type.scale
    above = f"{_unscaled(left)} * CAST({10**shift} AS HUGEINT)"
    smallest = f"{10**-kind.scale:.{kind.scale}f}"
    one = f"CAST('{smallest}' AS DECIMAL({min(kind.scale + 1, 38)}, {kind.scale}))"
    whole = f"CAST(half_up({above}, {_unscaled(right)}) AS DECIMAL(38, 0))"
    return TypedSql(f"CAST({whole} * {one} AS {kind.duck})", kind)


def _unscaled(value: TypedSql) -> str:
    scale = value.type.scale
    return f"CAST({value.text} * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS HUGEINT)"


MACROS = (
    "seen(x) AS CASE WHEN isnan(x) THEN 'NaN'::FLOAT ELSE x END",
    "divided(a, b) AS CASE WHEN b = 0 THEN error('division by zero') ELSE a / b END",
    "remainder(a, b) AS CASE WHEN b = 0 THEN error('division by zero') ELSE a % b END",
    """half_up(a, b) AS CASE WHEN b = 0 THEN error('division by zero')
        WHEN (a < 0) = (b < 0) THEN (2 * abs(a) + abs(b)) // (2 * abs(b))
        ELSE -((2 * abs(a) + abs(b)) // (2 * abs(b))) END""",
)
"""What arithmetic needs in DuckDB."""
