"""Functions of numbers, and those that choose between values."""

from __future__ import annotations

from millstream.sql.arithmetic import translate_arithmetic
from millstream.sql.cast import cast
from millstream.sql.function_call import Call, Function, from_template
from millstream.sql.scope import TypedSql
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


def _abs(call: Call) -> TypedSql:
    value = call.of(0, *NUMERIC)
    return TypedSql(f"abs({value.text})", value.type)


def _to_whole(call: Call) -> TypedSql:
    """Round up or down."""
    value = call.of(0, *NUMERIC)
    name = {"ceiling": "ceil"}.get(call.name, call.name)
    kind = BIGINT
    if value.type.kind == "decimal":
        kind = bounded(value.type.precision - value.type.scale + 1, 0)
    return TypedSql(f"CAST({name}({value.text}) AS {kind.duck})", kind)


def _round(call: Call) -> TypedSql:
    value = call.of(0, *INTEGRAL, "decimal", "double")
    digits = call.number(1) if len(call.arguments) > 1 else 0
    if digits is None or digits < 0:
        call.refuse()
    kind = value.type
    if kind.kind == "decimal":
        scale = min(digits, kind.scale)
        kind = bounded(kind.precision - kind.scale + 1 + scale, scale)
        return TypedSql(f"CAST({value.text} AS {kind.duck})", kind)
    if kind.kind in INTEGRAL:
        return value
    seen = f"CAST(CAST({value.text} AS VARCHAR) AS DECIMAL(38, {min(digits, 20)}))"
    keeps = f"isnan({value.text}) OR isinf({value.text}) OR abs({value.text}) >= {_WHOLE}"
    rounded = f"CAST(CAST({seen} AS VARCHAR) AS DOUBLE)"
    return TypedSql(f"CASE WHEN {keeps} THEN {value.text} ELSE {rounded} END", kind)


def _remainder(call: Call) -> TypedSql:
    return translate_arithmetic(call.expressions, "%", call.value(0), call.value(1), call.node)


def _pmod(call: Call) -> TypedSql:
    (one, other), kind = call.expressions.alike(call.values(), call.node)
    if kind.kind not in INTEGRAL:
        call.refuse()
    return TypedSql(f"positive_remainder({one}, {other})", kind)


def _coalesce(call: Call) -> TypedSql:
    texts, kind = call.expressions.alike(call.values(), call.node)
    return TypedSql(f"coalesce({', '.join(texts)})", kind)


def _nvl2(call: Call) -> TypedSql:
    values = call.values()
    return call.expressions.chosen([f"{values[0].text} IS NOT NULL"], values[1:], call.node)


def _if(call: Call) -> TypedSql:
    condition = call.to(0, BOOLEAN)
    return call.expressions.chosen([condition], [call.value(1), call.value(2)], call.node)


def _nullif(call: Call) -> TypedSql:
    values = call.values()
    (one, other), kind = call.expressions.alike(values, call.node)
    if kind.kind not in ORDERED:
        call.refuse()
    return TypedSql(
        f"CASE WHEN {one} = {other} THEN NULL ELSE {values[0].text} END", values[0].type
    )


def _extreme(call: Call) -> TypedSql:
    texts, kind = call.expressions.alike(call.values(), call.node)
    if kind.kind not in ORDERED:
        call.refuse()
    return TypedSql(f"{call.name}({', '.join(texts)})", kind)


def _is_null(call: Call) -> TypedSql:
    word = "IS NULL" if call.name == "isnull" else "IS NOT NULL"
    return TypedSql(f"({call.value(0).text} {word})", BOOLEAN)


def _is_nan(call: Call) -> TypedSql:
    value = call.of(0, "double", "float")
    return TypedSql(f"coalesce(isnan({value.text}), FALSE)", BOOLEAN)


def _try_divide(call: Call) -> TypedSql:
    one, other = call.of(0, *INTEGRAL, "double"), call.of(1, *INTEGRAL, "double")
    to = [call.expressions.to(value, DOUBLE, call.node) for value in (one, other)]
    return TypedSql(f"CASE WHEN {to[1]} = 0 THEN NULL ELSE {to[0]} / {to[1]} END", DOUBLE)


def _cast_to(kind: Type) -> Function:
    def build(call: Call) -> TypedSql:
        value = call.value(0)
        text = cast(value.text, value.type, kind, literal=value.literal)
        return TypedSql(text, kind) if text else call.refuse()

    return Function(build)


def _positive_only(name: str) -> Function:
    return from_template(f"CASE WHEN {{0}} <= 0 THEN NULL ELSE {name}({{0}}) END", DOUBLE, DOUBLE)


FUNCTIONS = {
    "abs": Function(_abs),
    **dict.fromkeys(("ceil", "ceiling", "floor"), Function(_to_whole)),
    "round": Function(_round, 1, 2),
    **dict.fromkeys(("sign", "signum"), from_template("CAST(sign({0}) AS DOUBLE)", DOUBLE, DOUBLE)),
    **dict.fromkeys(("pow", "power"), from_template("pow({0}, {1})", DOUBLE, DOUBLE, DOUBLE)),
    "sqrt": from_template(
        "CASE WHEN {0} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({0}) END", DOUBLE, DOUBLE
    ),
    **{
        name: from_template(f"{name}({{0}})", DOUBLE, DOUBLE)
        for name in ("exp", "sin", "cos", "tan", "atan")
    },
    **dict.fromkeys(("ln", "log"), _positive_only("ln")),
    "log10": _positive_only("log10"),
    "log2": _positive_only("log2"),
    "pi": Function(lambda _: TypedSql("pi()", DOUBLE), 0, 0),
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
