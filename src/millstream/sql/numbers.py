"""Functions of numbers, and those that choose between values."""

from __future__ import annotations

from millstream.sql.call import Call, Function, plainly
from millstream.sql.cast import cast
from millstream.sql.reckon import reckon
from millstream.sql.scope import Typed
from millstream.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTEGRAL,
    NUMERIC,
    ORDERED,
    STRING,
    Type,
    bounded,
)

_WHOLE = 2**53


def _abs(call: Call) -> Typed:
    value = call.of(0, *NUMERIC)
    return Typed(f"abs({value.text})", value.type)


def _to_whole(call: Call) -> Typed:
    """Round up or down."""
    value = call.of(0, *NUMERIC)
    name = {"ceiling": "ceil"}.get(call.name, call.name)
    kind = BIGINT
    if value.type.kind == "decimal":
        kind = bounded(value.type.precision - value.type.scale + 1, 0)
    return Typed(f"CAST({name}({value.text}) AS {kind.duck})", kind)


def _round(call: Call) -> Typed:
    value = call.of(0, *INTEGRAL, "decimal", "double")
    digits = call.number(1) if len(call.given) > 1 else 0
    if digits is None or digits < 0:
        call.refuse()
    kind = value.type
    if kind.kind == "decimal":
        scale = min(digits, kind.scale)
        kind = bounded(kind.precision - kind.scale + 1 + scale, scale)
        return Typed(f"CAST({value.text} AS {kind.duck})", kind)
    if kind.kind in INTEGRAL:
        return value
    seen = f"CAST(CAST({value.text} AS VARCHAR) AS DECIMAL(38, {min(digits, 20)}))"
    keeps = f"isnan({value.text}) OR isinf({value.text}) OR abs({value.text}) >= {_WHOLE}"
    rounded = f"CAST(CAST({seen} AS VARCHAR) AS DOUBLE)"
    return Typed(f"CASE WHEN {keeps} THEN {value.text} ELSE {rounded} END", kind)


def _remainder(call: Call) -> Typed:
    return reckon(call.expressions, "%", call.value(0), call.value(1), call.node)


def _pmod(call: Call) -> Typed:
    (one, other), kind = call.expressions.alike(call.values(), call.node)
    if kind.kind not in INTEGRAL:
        call.refuse()
    return Typed(f"positive_remainder({one}, {other})", kind)


def _coalesce(call: Call) -> Typed:
    texts, kind = call.expressions.alike(call.values(), call.node)
    return Typed(f"coalesce({', '.join(texts)})", kind)


def _nvl2(call: Call) -> Typed:
    values = call.values()
    return call.expressions.chosen([f"{values[0].text} IS NOT NULL"], values[1:], call.node)


def _if(call: Call) -> Typed:
    condition = call.to(0, BOOLEAN)
    return call.expressions.chosen([condition], [call.value(1), call.value(2)], call.node)


def _nullif(call: Call) -> Typed:
    values = call.values()
    (one, other), kind = call.expressions.alike(values, call.node)
    if kind.kind not in ORDERED:
        call.refuse()
    return Typed(f"CASE WHEN {one} = {other} THEN NULL ELSE {values[0].text} END", values[0].type)


def _extreme(call: Call) -> Typed:
    texts, kind = call.expressions.alike(call.values(), call.node)
    if kind.kind not in ORDERED:
        call.refuse()
    return Typed(f"{call.name}({', '.join(texts)})", kind)


def _is_null(call: Call) -> Typed:
    word = "IS NULL" if call.name == "isnull" else "IS NOT NULL"
    return Typed(f"({call.value(0).text} {word})", BOOLEAN)


def _is_nan(call: Call) -> Typed:
    value = call.of(0, "double", "float")
    return Typed(f"coalesce(isnan({value.text}), FALSE)", BOOLEAN)


def _try_divide(call: Call) -> Typed:
    one, other = call.of(0, *INTEGRAL, "double"), call.of(1, *INTEGRAL, "double")
    to = [call.expressions.to(value, DOUBLE, call.node) for value in (one, other)]
    return Typed(f"CASE WHEN {to[1]} = 0 THEN NULL ELSE {to[0]} / {to[1]} END", DOUBLE)


def _cast_to(kind: Type) -> Function:
    def build(call: Call) -> Typed:
        value = call.value(0)
        text = cast(value.text, value.type, kind, literal=value.literal)
        return Typed(text, kind) if text else call.refuse()

    return Function(build)


def _positive_only(name: str) -> Function:
    return plainly(f"CASE WHEN {{0}} <= 0 THEN NULL ELSE {name}({{0}}) END", DOUBLE, DOUBLE)


FUNCTIONS = {
    "abs": Function(_abs),
    **dict.fromkeys(("ceil", "ceiling", "floor"), Function(_to_whole)),
    "round": Function(_round, 1, 2),
    **dict.fromkeys(("sign", "signum"), plainly("CAST(sign({0}) AS DOUBLE)", DOUBLE, DOUBLE)),
    **dict.fromkeys(("pow", "power"), plainly("pow({0}, {1})", DOUBLE, DOUBLE, DOUBLE)),
    "sqrt": plainly("CASE WHEN {0} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({0}) END", DOUBLE, DOUBLE),
    **{
        name: plainly(f"{name}({{0}})", DOUBLE, DOUBLE)
        for name in ("exp", "sin", "cos", "tan", "atan")
    },
    **dict.fromkeys(("ln", "log"), _positive_only("ln")),
    "log10": _positive_only("log10"),
    "log2": _positive_only("log2"),
    "pi": Function(lambda _: Typed("pi()", DOUBLE), 0, 0),
    "mod": Function(_remainder, 2, 2),
    "pmod": Function(_pmod, 2, 2),
    "try_divide": Function(_try_divide, 2, 2),
    "coalesce": Function(_coalesce, 1, 99),
    **dict.fromkeys(("nvl", "ifnull"), Function(_coalesce, 2, 2)),
    "nvl2": Function(_nvl2, 3, 3),
    **dict.fromkeys(("if", "iff"), Function(_if, 3, 3)),
    "nullif": Function(_nullif, 2, 2),
    **dict.fromkeys(("greatest", "least"), Function(_extreme, 2, 99)),
    **dict.fromkeys(("isnull", "isnotnull"), Function(_is_null)),
    "isnan": Function(_is_nan),
    "string": _cast_to(STRING),
    "int": _cast_to(INT),
    "bigint": _cast_to(BIGINT),
    "double": _cast_to(DOUBLE),
    "boolean": _cast_to(BOOLEAN),
}
"""By their names in Spark."""

MACROS = (
    "positive_remainder(a, b) AS CASE WHEN b = 0 THEN error('division by zero') "
    "WHEN a % b < 0 THEN (a % b + b) % b ELSE a % b END",
)
"""What these need in DuckDB."""
