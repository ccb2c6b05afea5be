"""Functions of sketches, which `sql.sketch` computes."""

from __future__ import annotations

from sqlglot import exp

from millstream.model.sketch import ITEMS
from millstream.sql.frequent_items import KINDS
from millstream.sql.function_call import Call, Function
from millstream.sql.scope import TypedSql
from millstream.sql.types import BIGINT, DOUBLE, Type, array, struct

_BINARY = Type("binary")
_DISTINCT = struct(("estimate", BIGINT), ("lower", BIGINT), ("upper", BIGINT), ("theta", _BINARY))
_LG_K, _TOP = 12, 5
"""Spark's defaults."""


def _bytes(call: Call, index: int) -> str:
    return call.of(index, "binary").text


def _of_bytes(name: str, gives: Type, count: int = 1) -> Function:
    def build(call: Call) -> TypedSql:
        arguments = ", ".join(_bytes(call, index) for index in range(count))
        return TypedSql(f"{name}({arguments})", gives)

    return Function(build, count, count)


def _size(call: Call, index: int, default: int | None) -> str:
    """Return the size of a merged sketch, which must be a number in the query."""
    if len(call.arguments) <= index:
        return "CAST(NULL AS INTEGER)" if default is None else str(default)
    size = call.number(index)
    return str(size) if size is not None else call.refuse()


def _union(call: Call) -> TypedSql:
    pair = f"[{_bytes(call, 0)}, {_bytes(call, 1)}]"
    empty = f"{_bytes(call, 0)} IS NULL OR {_bytes(call, 1)} IS NULL"
    text = f"sketch_theta_union({pair}, {_size(call, 2, _LG_K)})"
    return TypedSql(f"CASE WHEN {empty} THEN NULL ELSE {text} END", _BINARY)


def _merged(name: str, default: int | None) -> Function:
    def build(call: Call) -> TypedSql:
        if isinstance(call.arguments[0], exp.Distinct):
            call.refuse(f"DISTINCT in {call.name}")
        listed = f"coalesce(list({_bytes(call, 0)}){call.suffix}, [])"
        return TypedSql(f"{name}({listed}, {_size(call, 1, default)})", _BINARY)

    return Function(build, 1, 2, "aggregate")


def _kll_merged(call: Call) -> TypedSql:
    pair = f"[{_bytes(call, 0)}, {_bytes(call, 1)}]"
    empty = f"{_bytes(call, 0)} IS NULL OR {_bytes(call, 1)} IS NULL"
    text = f"sketch_kll_merge({pair}, CAST(NULL AS INTEGER))"
    return TypedSql(f"CASE WHEN {empty} THEN NULL ELSE {text} END", _BINARY)


def _doubles(call: Call, index: int) -> str:
    value = call.of(index, "array")
    if not value.type["element"].is_numeric:
        call.refuse(f"{call.name}({value.type})")
    return f"CAST({value.text} AS DOUBLE[])"


def _looked_up(name: str) -> Function:
    """Look up one number, or each of an array."""

    def build(call: Call) -> TypedSql:
        if call.value(1).type.kind == "array":
            return TypedSql(f"{name}({_bytes(call, 0)}, {_doubles(call, 1)})", array(DOUBLE))
        return TypedSql(f"{name}({_bytes(call, 0)}, [{call.to(1, DOUBLE)}])[1]", DOUBLE)

    return Function(build, 2, 2)


def _items(call: Call) -> tuple[TypedSql, str]:
    """Return a sketch of frequent items, and the type of these."""
    value = call.of(0, "struct")
    if tuple(name for name, _ in value.type.parts) != ITEMS:
        call.refuse(f"{call.name}({value.type})")
    kind = value.type["itemDataType"].kind
    return value, kind if kind in KINDS else call.refuse(f"{call.name} of {kind}")


def _top(call: Call) -> TypedSql:
    value, kind = _items(call)
    item = struct(("item", value.type["itemDataType"]), ("count", BIGINT))
    text = f"sketch_top_{kind}({value.text}.sketch, {_size(call, 1, _TOP)})"
    return TypedSql(text, array(item))


def _combined(call: Call) -> TypedSql:
    value, kind = _items(call)
    if len(call.arguments) == 1 or call.suffix.startswith(" OVER"):
        call.refuse(f"{call.name} without a size, or with OVER")
    size = _size(call, 1, None)
    listed = f"coalesce(list({value.text}.sketch){call.suffix}, [])"
    merged = f"sketch_items_{kind}({listed}, {size})"
    ddl = f"any_value({value.text}.itemDataTypeDDL){call.suffix}"
    text = (
        f"{{'sketch': {merged}, 'maxItemsTracked': {size}, "
        f"'itemDataType': CAST(NULL AS {KINDS[kind]}), 'itemDataTypeDDL': {ddl}}}"
    )
    return TypedSql(text, value.type)


FUNCTIONS = {
    "theta_sketch_estimate": _of_bytes("sketch_theta_estimate", BIGINT),
    "theta_union": Function(_union, 2, 3),
    "theta_intersection": _of_bytes("sketch_theta_intersection", _BINARY, 2),
    "theta_difference": _of_bytes("sketch_theta_difference", _BINARY, 2),
    "theta_union_agg": _merged("sketch_theta_union", _LG_K),
    "approx_top_k_estimate": Function(_top, 1, 2),
    "approx_top_k_combine": Function(_combined, 1, 2, "aggregate"),
    "distinct_estimate": _of_bytes("sketch_distinct", _DISTINCT),
    "kll_sketch_get_n_double": _of_bytes("sketch_kll_count", BIGINT),
    "kll_sketch_get_quantile_double": _looked_up("sketch_kll_quantiles"),
    "kll_sketch_get_rank_double": _looked_up("sketch_kll_ranks"),
    "kll_sketch_merge_double": Function(_kll_merged, 2, 2),
    "kll_merge_agg_double": _merged("sketch_kll_merge", None),
}
"""By their names in Spark; `distinct_estimate` is Millstream's own."""
