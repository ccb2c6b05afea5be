"""Functions of arrays, maps and structs."""

from __future__ import annotations

from sqlglot import exp

from millstream.sql.function_call import Call, Function
from millstream.sql.scope import TypedSql
from millstream.sql.types import (
    BIGINT,
    BOOLEAN,
    INT,
    INTEGRAL,
    ORDERED,
    STRING,
    Type,
    array,
    string_literal,
    struct,
)


def _array(call: Call) -> TypedSql:
    texts, kind = call.expressions.alike(call.values(), call.node)
    return TypedSql(f"[{', '.join(texts)}]", array(kind))


def _struct(call: Call) -> TypedSql:
    fields = []
    for number, node in enumerate(call.arguments, 1):
        inner = node.this if isinstance(node, exp.Alias) else node
        name = node.alias if isinstance(node, exp.Alias) else f"col{number}"
        if isinstance(node, exp.Column):
            name = node.name
        fields.append((name, call.expressions.translate(inner, call.scope)))
    return _packed(fields)


def _named_struct(call: Call) -> TypedSql:
    if len(call.arguments) % 2:
        call.refuse()
    fields = []
    for index in range(0, len(call.arguments), 2):
        name = call.text(index)
        fields.append((name if name is not None else call.refuse(), call.value(index + 1)))
    return _packed(fields)


def _packed(fields: list[tuple[str, TypedSql]]) -> TypedSql:
    text = ", ".join(f"{string_literal(name)}: {value.text}" for name, value in fields)
    return TypedSql(f"{{{text}}}", struct(*((name, value.type) for name, value in fields)))


def _map(call: Call) -> TypedSql:
    values = call.values()
    if len(values) % 2 or not values:
        call.refuse()
    keys, key = call.expressions.alike(values[::2], call.node)
    held, value = call.expressions.alike(values[1::2], call.node)
    text = f"MAP([{', '.join(keys)}], [{', '.join(held)}])"
    return TypedSql(text, Type("map", parts=(("key", key), ("value", value))))


def _size(call: Call) -> TypedSql:
    value = call.of(0, "array", "map")
    measure = "len" if value.type.kind == "array" else "cardinality"
    return TypedSql(f"CAST({measure}({value.text}) AS INTEGER)", INT)


def _item(call: Call) -> TypedSql:
    """Take `x[i]`, which counts from 0, or `m[key]`."""
    value = call.of(0, "array", "map")
    if value.type.kind == "map":
        return _of_key(call, value)
    index = call.of(1, *INTEGRAL).text
    outside = f"{index} < 0 OR {index} >= len({value.text})"
    problem = f"error('index ' || {index} || ' is outside of an array of ' || len({value.text}))"
    text = f"CASE WHEN {outside} THEN {problem} ELSE {value.text}[{index} + 1] END"
    return TypedSql(text, value.type["element"])


def _of_key(call: Call, value: TypedSql) -> TypedSql:
    key = call.expressions.to(call.value(1), value.type["key"], call.node)
    return TypedSql(f"{value.text}[{key}]", value.type["value"])


def _element_at(call: Call) -> TypedSql:
    """Take an element, counted from 1 or, negative, from the end."""
    value = call.of(0, "array", "map")
    if value.type.kind == "map":
        return _of_key(call, value)
    index = call.of(1, *INTEGRAL).text
    problem = f"error('index ' || {index} || ' is outside of an array of ' || len({value.text}))"
    if call.name == "try_element_at":
        problem = f"CASE WHEN {index} = 0 THEN error('index 0 of element_at') END"
    outside = f"{index} = 0 OR abs({index}) > len({value.text})"
    text = f"CASE WHEN {outside} THEN {problem} ELSE {value.text}[{index}] END"
    return TypedSql(text, value.type["element"])


def _get(call: Call) -> TypedSql:
    value, index = call.of(0, "array"), call.of(1, *INTEGRAL).text
    text = f"CASE WHEN {index} >= 0 THEN {value.text}[{index} + 1] END"
    return TypedSql(text, value.type["element"])


def _contains(call: Call) -> TypedSql:
    value, sought = _sought(call)
    some = f"len(list_filter({value.text}, lambda _e: _e IS NULL)) > 0"
    text = (
        f"CASE WHEN {value.text} IS NULL OR {sought} IS NULL THEN NULL "
        f"WHEN list_contains({value.text}, {sought}) THEN TRUE WHEN {some} THEN NULL ELSE FALSE END"
    )
    return TypedSql(text, BOOLEAN)


def _position(call: Call) -> TypedSql:
    value, sought = _sought(call)
    found = f"coalesce(list_position({value.text}, {sought}), 0)"
    text = f"CASE WHEN {value.text} IS NULL OR {sought} IS NULL THEN NULL ELSE {found} END"
    return TypedSql(f"CAST({text} AS BIGINT)", BIGINT)


def _sought(call: Call) -> tuple[TypedSql, str]:
    value, sought = call.of(0, "array"), call.value(1)
    if value.type["element"] != sought.type or sought.type.kind not in ORDERED:
        call.refuse(f"{call.name} of {sought.type} in {value.type}")
    return value, sought.text


def _sorted(call: Call) -> TypedSql:
    value = call.of(0, "array")
    down = (
        len(call.arguments) > 1
        and isinstance(call.arguments[1], exp.Boolean)
        and not call.arguments[1].this
    )
    if value.type["element"].kind not in ORDERED or (
        len(call.arguments) > 1 and not isinstance(call.arguments[1], exp.Boolean)
    ):
        call.refuse()
    how = "'DESC', 'NULLS LAST'" if down else "'ASC', 'NULLS FIRST'"
    return TypedSql(f"list_sort({value.text}, {how})", value.type)


def _extreme(call: Call) -> TypedSql:
    value = call.of(0, "array")
    if value.type["element"].kind not in ORDERED:
        call.refuse()
    return TypedSql(f"list_{call.name[-3:]}({value.text})", value.type["element"])


def _join(call: Call) -> TypedSql:
    value = call.of(0, "array")
    if value.type["element"] != STRING:
        call.refuse()
    kept = f"list_filter({value.text}, lambda _e: _e IS NOT NULL)"
    if len(call.arguments) > 2:
        kept = f"list_transform({value.text}, lambda _e: coalesce(_e, {call.to(2, STRING)}))"
    joined = (
        f"CASE WHEN len({kept}) = 0 THEN '' ELSE array_to_string({kept}, {call.to(1, STRING)}) END"
    )
    return TypedSql(f"CASE WHEN {value.text} IS NULL THEN NULL ELSE {joined} END", STRING)


def _slice(call: Call) -> TypedSql:
    value, start, length = call.of(0, "array"), call.number(1), call.number(2)
    if start is None or length is None or start < 1 or length < 0:
        call.refuse()
    return TypedSql(f"{value.text}[{start}:{start + length - 1}]", value.type)


def _reverse(call: Call) -> TypedSql:
    value = call.of(0, "array")
    return TypedSql(f"list_reverse({value.text})", value.type)


def _keys(call: Call) -> TypedSql:
    value = call.of(0, "map")
    part = "key" if call.name == "map_keys" else "value"
    return TypedSql(f"{call.name}({value.text})", array(value.type[part]))


def _has_key(call: Call) -> TypedSql:
    value = call.of(0, "map")
    key = call.expressions.to(call.value(1), value.type["key"], call.node)
    return TypedSql(f"map_contains({value.text}, {key})", BOOLEAN)


def _transform(call: Call) -> TypedSql:
    value, body, parameter = _lambda(call)
    text = f"list_transform({value.text}, lambda {parameter}: {body.text})"
    return TypedSql(text, array(body.type))


def _filter(call: Call) -> TypedSql:
    value, body, parameter = _lambda(call)
    if body.type != BOOLEAN:
        call.refuse()
    return TypedSql(f"list_filter({value.text}, lambda {parameter}: {body.text})", value.type)


def _lambda(call: Call) -> tuple[TypedSql, TypedSql, str]:
    value, function = call.of(0, "array"), call.arguments[1]
    if not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
        call.refuse()
    name = function.expressions[0].name.lower()
    parameter = f"_{name}"
    inside = call.scope.inside([(name, TypedSql(parameter, value.type["element"]))])
    return value, call.expressions.translate(function.this, inside), parameter


FUNCTIONS = {
    "array": Function(_array, 1, 999),
    "struct": Function(_struct, 1, 999),
    "named_struct": Function(_named_struct, 2, 999),
    "map": Function(_map, 2, 999),
    **dict.fromkeys(("size", "cardinality"), Function(_size)),
    "[]": Function(_item, 2, 2),
    **dict.fromkeys(("element_at", "try_element_at"), Function(_element_at, 2, 2)),
    "get": Function(_get, 2, 2),
    "array_contains": Function(_contains, 2, 2),
    "array_position": Function(_position, 2, 2),
    "sort_array": Function(_sorted, 1, 2),
    **dict.fromkeys(("array_max", "array_min"), Function(_extreme)),
    "array_join": Function(_join, 2, 3),
    "slice": Function(_slice, 3, 3),
    "reverse": Function(_reverse),
    **dict.fromkeys(("map_keys", "map_values"), Function(_keys)),
    "map_contains_key": Function(_has_key, 2, 2),
    "transform": Function(_transform, 2, 2),
    "filter": Function(_filter, 2, 2),
}
"""By their names in Spark."""
