"""Windows: OVER with its partitions, its order and its frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.sql.function_call import Call
from millstream.sql.functions import FUNCTIONS
from millstream.sql.refusal import refuse
from millstream.sql.types import ORDERED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.sql.expression import Expressions
    from millstream.sql.scope import SqlScope, TypedSql


def translate_window(expressions: Expressions, node: exp.Window, scope: SqlScope) -> TypedSql:
    """Translate a call with OVER."""
    inner, suffix = node.this, ""
    if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
        suffix = " IGNORE NULLS" if isinstance(inner, exp.IgnoreNulls) else ""
        inner = inner.this
    if isinstance(inner, exp.Filter):
        suffix += f" FILTER (WHERE {expressions.condition(inner.expression.this, scope)})"
        inner = inner.this
    function = FUNCTIONS.get(inner.name.lower()) if isinstance(inner, exp.Anonymous) else None
    if function is None or function.kind == "scalar" or node.args.get("alias"):
        refuse(node)
    if any(isinstance(argument, exp.Distinct) for argument in inner.expressions):
        refuse(node, "DISTINCT in a window")
    if not function.least <= len(inner.expressions) <= function.most:
        refuse(node)
    over = f" OVER ({_specification(expressions, node, scope)})"
    arguments = tuple(inner.expressions)
    return function.build(
        Call(expressions, inner, inner.name.lower(), arguments, scope, suffix + over)
    )


def ordered(expressions: Expressions, keys: Iterable[exp.Expr], scope: SqlScope) -> str:
    """Translate what is sorted by; nulls come first, of a descending order last."""
    return ", ".join(_key(expressions, key, scope) for key in keys)


def _key(expressions: Expressions, key: exp.Expr, scope: SqlScope) -> str:
    if not isinstance(key, exp.Ordered) or key.args.get("with_fill"):
        refuse(key)
    value = expressions.translate(key.this, scope)
    if value.type.kind not in ORDERED:
        refuse(key, f"an order of {value.type}")
    return value.text + direction(key)


def direction(key: exp.Ordered) -> str:
    """Return which way a key sorts."""
    return f" {'DESC' if key.args.get('desc') else 'ASC'} NULLS " + (
        "FIRST" if key.args.get("nulls_first") else "LAST"
    )


def _specification(expressions: Expressions, node: exp.Window, scope: SqlScope) -> str:
    parts = []
    if by := node.args.get("partition_by"):
        parts.append("PARTITION BY " + ", ".join(expressions.translate(b, scope).text for b in by))
    if order := node.args.get("order"):
        parts.append("ORDER BY " + ordered(expressions, order.expressions, scope))
    if spec := node.args.get("spec"):
        parts.append(_frame(node, spec))
    return " ".join(parts)


def _frame(node: exp.Window, spec: exp.WindowSpec) -> str:
    kind = str(spec.args["kind"]).upper()
    edges = [_edge(node, spec, side, kind) for side in ("start", "end")]
    if spec.args.get("exclude"):
        refuse(node)
    return f"{kind} BETWEEN {edges[0]} AND {edges[1]}"


def _edge(node: exp.Window, spec: exp.WindowSpec, side: str, kind: str) -> str:
    edge, way = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if edge is None or str(edge).upper() == "CURRENT ROW":
        return "CURRENT ROW"
    if str(edge).upper() == "UNBOUNDED":
        return f"UNBOUNDED {way}"
    if kind != "ROWS" or not isinstance(edge, exp.Literal) or edge.is_string:
        refuse(node, f"a frame of {kind} {edge}")
    return f"{edge.name} {way}"
