"""Decimals reckoned as Spark does: their type by its rule, halves rounded away from zero."""

from __future__ import annotations

from millstream.sql.scope import Typed
from millstream.sql.types import Type, as_decimal, decimal, reckoned


def exact(value: Typed) -> Typed:
    """Take a whole number as a decimal; a literal has no more digits than are written."""
    kind = as_decimal(value.type)
    if isinstance(value.literal, int):
        kind = decimal(len(str(abs(value.literal))), 0)
    return Typed(f"CAST({value.text} AS {kind.duck})", kind)


def reckon_decimals(sign: str, left: Typed, right: Typed) -> Typed:
    """Add, subtract, multiply or divide decimals."""
    kind = reckoned(sign, left.type, right.type)
    if sign == "/":
        return quotient(left, right, kind)
    text = f"({left.text} {sign} {right.text})"
    if sign == "%":
        text = f"remainder({left.text}, {right.text})"
    return Typed(f"CAST({text} AS {kind.duck})", kind)


def quotient(left: Typed, right: Typed, kind: Type) -> Typed:
    """Divide decimals, in whole numbers."""
    shift = kind.scale - left.type.scale + right.type.scale
    above = f"{_unscaled(left)} * CAST({10**shift} AS HUGEINT)"
    smallest = f"{10**-kind.scale:.{kind.scale}f}"
    one = f"CAST('{smallest}' AS DECIMAL({min(kind.scale + 1, 38)}, {kind.scale}))"
    whole = f"CAST(half_up({above}, {_unscaled(right)}) AS DECIMAL(38, 0))"
    return Typed(f"CAST({whole} * {one} AS {kind.duck})", kind)


def _unscaled(value: Typed) -> str:
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
"""What reckoning needs in DuckDB."""
