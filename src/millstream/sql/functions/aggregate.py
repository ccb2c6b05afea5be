"""Functions of many rows: aggregates, and those that need a window."""

from __future__ import annotations

from sqlglot import exp

from millstream.sql.arithmetic import quotient
from millstream.sql.function_call import Call, Function
from millstream.sql.scope import TypedSql
from millstream.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTEGRAL,
    NUMERIC,
    ORDERED,
    Type,
    array,
    bounded,
    decimal,
)


def _arguments(call: Call) -> tuple[list[TypedSql], str]:
    """Return the arguments, and DISTINCT if it is there."""
    [first, *_] = call.arguments
    if not isinstance(first, exp.Distinct):
        return call.values(), ""
    arguments = [call.expressions.translate(node, call.scope) for node in first.expressions]
    return arguments, "DISTINCT "


def _one(call: Call, *kinds: str) -> tuple[TypedSql, str]:
    values, distinct = _arguments(call)
    if len(values) != 1 or values[0].type.kind not in kinds:
        call.refuse(f"{call.name}({', '.join(str(value.type) for value in values)})")
    return values[0], distinct + values[0].text


def _count(call: Call) -> TypedSql:
    if isinstance(call.arguments[0], exp.Star):
        return TypedSql(f"count(*){call.suffix}", BIGINT)
    values, distinct = _arguments(call)
    what = values[0].text
    if len(values) > 1:
        whole = " AND ".join(f"{value.text} IS NOT NULL" for value in values)
        row = f"row({', '.join(value.text for value in values)})"
        what = f"CASE WHEN {whole} THEN {row} END"
    return TypedSql(f"count({distinct}{what}){call.suffix}", BIGINT)


def _sum(call: Call) -> TypedSql:
    value, arguments = _one(call, *NUMERIC)
    kind = BIGINT if value.type.kind in INTEGRAL else DOUBLE
    if value.type.kind == "decimal":
        kind = bounded(value.type.precision + 10, value.type.scale)
    return TypedSql(f"CAST(sum({arguments}){call.suffix} AS {kind.duck})", kind)


def _avg(call: Call) -> TypedSql:
    value, arguments = _one(call, *NUMERIC)
    if value.type.kind != "decimal":
        return TypedSql(f"avg({arguments}){call.suffix}", DOUBLE)
    total = bounded(value.type.precision + 10, value.type.scale)
    kind = bounded(value.type.precision + 4, value.type.scale + 4)
    above = TypedSql(f"CAST(sum({arguments}){call.suffix} AS {total.duck})", total)
    below = TypedSql(
        f"CAST(nullif(count({arguments}){call.suffix}, 0) AS DECIMAL(20, 0))", decimal(20, 0)
    )
    return quotient(above, below, kind)


def _extreme(call: Call) -> TypedSql:
    value, arguments = _one(call, *ORDERED)
    return TypedSql(f"{call.name}({arguments}){call.suffix}", value.type)


def _spread(call: Call) -> TypedSql:
    value, arguments = _one(call, *NUMERIC)
    if "DISTINCT" in arguments[:8]:
        call.refuse()
    name = {"std": "stddev_samp", "stddev": "stddev_samp", "variance": "var_samp"}.get(
        call.name, call.name
    )
    return TypedSql(f"{name}(CAST({value.text} AS DOUBLE)){call.suffix}", DOUBLE)


def _count_if(call: Call) -> TypedSql:
    return TypedSql(f"CAST(count_if({call.to(0, BOOLEAN)}){call.suffix} AS BIGINT)", BIGINT)


def _every(call: Call) -> TypedSql:
    name = "bool_and" if call.name in ("every", "bool_and") else "bool_or"
    return TypedSql(f"{name}({call.to(0, BOOLEAN)}){call.suffix}", BOOLEAN)


def _collect(call: Call) -> TypedSql:
    if call.suffix:
        call.refuse(f"{call.name} with FILTER or OVER")
    values, distinct = _arguments(call)
    distinct = "DISTINCT " if call.name == "collect_set" else distinct
    if len(values) != 1 or (distinct and values[0].type.kind not in ORDERED):
        call.refuse()
    kind, text = array(values[0].type), values[0].text
    return TypedSql(f"coalesce(list({distinct}{text}) FILTER (WHERE {text} IS NOT NULL), [])", kind)


def _by(call: Call) -> TypedSql:
    value, by = call.values()
    if by.type.kind not in ORDERED:
        call.refuse()
    return TypedSql(f"arg_{call.name[:3]}_null({value.text}, {by.text}){call.suffix}", value.type)


def _percentile(call: Call) -> TypedSql:
    value = call.of(0, *NUMERIC)
    share = call.arguments[1] if len(call.arguments) > 1 else exp.Literal.number("0.5")
    if not isinstance(share, exp.Literal) or not 0 <= float(share.name) <= 1:
        call.refuse()
    text = f"quantile_cont(CAST({value.text} AS DOUBLE), {share.name}){call.suffix}"
    return TypedSql(text, DOUBLE)


def _corr(call: Call) -> TypedSql:
    pair = ", ".join(call.to(index, DOUBLE) for index in (1, 0))
    return TypedSql(f"{call.name}({pair}){call.suffix}", DOUBLE)


def _grouping(call: Call) -> TypedSql:
    name = "grouping"
    kind = Type("tinyint") if call.name == "grouping" else BIGINT
    arguments = ", ".join(value.text for value in call.values())
    return TypedSql(f"CAST({name}({arguments}) AS {kind.duck})", kind)


def _ranked(call: Call) -> TypedSql:
    kind = DOUBLE if call.name in ("percent_rank", "cume_dist") else INT
    arguments = call.to(0, INT) if call.arguments else ""
    return TypedSql(f"CAST({call.name}({arguments}){call.suffix} AS {kind.duck})", kind)


def _neighbour(call: Call) -> TypedSql:
    """Take the value of a row before or after."""
    value = call.value(0)
    distance = call.to(1, INT) if len(call.arguments) > 1 else "1"
    default = f", {call.to(2, value.type)}" if len(call.arguments) > 2 else ""
    nulls, suffix = _nulls(call)
    return TypedSql(f"{call.name}({value.text}, {distance}{default}{nulls}){suffix}", value.type)


def _nth(call: Call) -> TypedSql:
    value, (nulls, suffix) = call.value(0), _nulls(call)
    name = {"first": "first_value", "last": "last_value"}.get(call.name, call.name)
    nth = f", {call.to(1, INT)}" if name == "nth_value" else ""
    return TypedSql(f"{name}({value.text}{nth}{nulls}){suffix}", value.type)


def _nulls(call: Call) -> tuple[str, str]:
    """Move IGNORE NULLS to where DuckDB wants it."""
    skips = call.suffix.startswith(" IGNORE NULLS")
    return (" IGNORE NULLS" if skips else ""), call.suffix.removeprefix(" IGNORE NULLS")


def _aggregate(build: object, least: int = 1, most: int = 1) -> Function:
    return Function(build, least, most, "aggregate")  # type: ignore[arg-type]


FUNCTIONS = {
    "count": _aggregate(_count, 1, 9),
    "sum": _aggregate(_sum),
    **dict.fromkeys(("avg", "mean"), _aggregate(_avg)),
    **dict.fromkeys(("min", "max"), _aggregate(_extreme)),
    **dict.fromkeys(
        ("std", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"),
        _aggregate(_spread),
    ),
    "count_if": _aggregate(_count_if),
    **dict.fromkeys(("every", "bool_and", "some", "any", "bool_or"), _aggregate(_every)),
    **dict.fromkeys(("collect_list", "array_agg", "collect_set"), _aggregate(_collect)),
    **dict.fromkeys(("max_by", "min_by"), _aggregate(_by, 2, 2)),
    "percentile": _aggregate(_percentile, 2, 2),
    "median": _aggregate(_percentile),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp"), _aggregate(_corr, 2, 2)),
    **dict.fromkeys(("grouping", "grouping_id"), Function(_grouping, 1, 9)),
    **{
        name: Function(_ranked, 0, 0, "window")
        for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")
    },
    "ntile": Function(_ranked, 1, 1, "window"),
    **dict.fromkeys(("lag", "lead"), Function(_neighbour, 1, 3, "window")),
    **dict.fromkeys(("first_value", "last_value", "first", "last"), Function(_nth, 1, 1, "window")),
    "nth_value": Function(_nth, 2, 2, "window"),
}
"""By their names in Spark."""
