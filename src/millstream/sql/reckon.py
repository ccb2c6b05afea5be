"""Sums, differences, products and quotients: of numbers, of moments and of spans of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.sql.number import exact, reckon_decimals
from millstream.sql.refusal import refuse
from millstream.sql.scope import Typed
from millstream.sql.types import DOUBLE, TEMPORAL, VOID, Type

if TYPE_CHECKING:
    from sqlglot import exp

    from millstream.sql.expression import Expressions


def reckon(expressions: Expressions, sign: str, left: Typed, right: Typed, node: exp.Expr) -> Typed:
    """Add, subtract, multiply or divide."""
    if "interval" in left.type.kind + right.type.kind or {left.type.kind, right.type.kind} & {
        *TEMPORAL
    }:
        return _shift(expressions, sign, left, right, node)
    if VOID in (left.type, right.type) or not (left.type.is_numeric and right.type.is_numeric):
        refuse(node, f"{left.type} {sign} {right.type}")
    kinds = {left.type.kind, right.type.kind}
    if "decimal" in kinds and not kinds & {"float", "double"}:
        return reckon_decimals(sign, exact(left), exact(right))
    (one, other), kind = expressions.alike([left, right], node)
    if sign == "/":
        one, other = (expressions.to(v, DOUBLE, node) for v in (left, right))
        return Typed(f"divided({one}, {other})", DOUBLE)
    if sign == "%":
        return Typed(f"remainder({one}, {other})", kind)
    return Typed(f"({one} {sign} {other})", kind)


def _shift(expressions: Expressions, sign: str, left: Typed, right: Typed, node: exp.Expr) -> Typed:
    """Reckon with moments and spans of time."""
    kinds = (left.type.kind, right.type.kind)
    if sign == "+" and kinds[0].startswith("interval") and kinds[1] in TEMPORAL:
        return _shift(expressions, sign, right, left, node)
    if kinds == ("interval", "interval") and sign in "+-":
        both = "days" if left.literal and right.literal else None
        return Typed(f"({left.text} {sign} {right.text})", left.type, both)
    if sign in "+-" and kinds[0] in TEMPORAL and kinds[1].startswith("interval"):
        kind = left.type
        if kind.kind == "date" and kinds[1] == "interval" and right.literal != "days":
            left = Typed(expressions.to(left, Type("timestamp"), node), Type("timestamp"))
            kind = left.type
        return Typed(f"CAST({left.text} {sign} {right.text} AS {kind.duck})", kind)
    if sign in "+-" and kinds[0] == "date" and kinds[1] in ("int", "smallint", "tinyint"):
        return Typed(f"({left.text} {sign} {right.text})", left.type)
    if sign == "-" and set(kinds) <= {"timestamp"}:
        return Typed(f"({left.text} - {right.text})", Type("interval"))
    return refuse(node, f"{left.type} {sign} {right.type}")
