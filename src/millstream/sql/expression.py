"""Expressions of Spark's SQL in DuckDB's: only what is known to mean the same gets through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.errors import fault
from millstream.sql.arithmetic import translate_arithmetic
from millstream.sql.cast import cast
from millstream.sql.function_call import Call
from millstream.sql.functions import FUNCTIONS
from millstream.sql.like import like, regexp_like
from millstream.sql.literal import translate_interval, translate_literal, type_of
from millstream.sql.refusal import location_of, refuse, unknown_column
from millstream.sql.scope import SqlScope, TypedSql
from millstream.sql.types import BOOLEAN, INTEGRAL, ORDERED, STRING, VOID, Type, common
from millstream.sql.window import translate_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Query = Callable[[exp.Expr, SqlScope], tuple[str, Sequence[Type]]]

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_ARGUMENTS: dict[type[exp.Expr], set[str]] = {
    exp.Between: {"low", "high"},
    exp.Boolean: set(),
    exp.Case: {"ifs", "default"},
    exp.Cast: {"to"},
    exp.Column: {"table", "db", "catalog"},
    exp.Div: {"typed", "safe"},
    exp.DPipe: {"safe"},
    exp.ILike: {"negate"},
    exp.Like: {"negate"},
    exp.RegexpLike: {"negate"},
    exp.In: {"query"},
    exp.Interval: {"unit"},
    exp.Literal: {"is_string"},
    exp.StrPosition: {"substr"},
    exp.Substring: {"start", "length"},
    exp.Trim: {"position"},
    exp.TryCast: {"to", "safe"},
    exp.Window: {"partition_by", "order", "spec", "over"},
}
"""What else than operands we know of a node; anything more would change its meaning unseen."""


class Expressions:
    """Translates the expressions of a query, in the scope of its names."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def translate(self, node: exp.Expr, scope: SqlScope) -> TypedSql:
        """Translate an expression.

        Raises:
            SQL_NOT_TRANSLATED: It is not known to mean the same in DuckDB.
            UNKNOWN_COLUMN: It names a column that is not there.
        """
        known = {"this", "expression", "expressions"} | _ARGUMENTS.get(type(node), set())
        if any(value and key not in known for key, value in node.args.items()):
            refuse(node)
        if kind := _COMPARED.get(type(node)):
            return self._compare(node, kind, scope)
        if kind := _ARITHMETIC.get(type(node)):
            return self._arithmetic(node, kind, scope)
        method = getattr(
            self, "_" + re.sub("(?<=[a-z])(?=[A-Z])", "_", type(node).__name__).lower(), None
        )
        translated: TypedSql = method(node, scope) if method else refuse(node)
        return translated

    def condition(self, node: exp.Expr, scope: SqlScope) -> str:
        """Translate something that is true, false or null."""
        return self.to(self.translate(node, scope), BOOLEAN, node)

    def to(self, value: TypedSql, wanted: Type, node: exp.Expr) -> str:
        """Cast a value to another type, as Spark does implicitly."""
        is_widened = common((value.type, wanted)) == wanted
        if not is_widened and (value.type.kind, wanted.kind) != ("timestamp", "date"):
            refuse(node, f"{value.type} as {wanted}, without a cast, in {node.sql('spark')}")
        text = cast(value.text, value.type, wanted, literal=value.literal)
        return text or refuse(node, f"{value.type} as {wanted}, in {node.sql('spark')}")

    def alike(self, values: Sequence[TypedSql], node: exp.Expr) -> tuple[list[str], Type]:
        """Cast values to their common type."""
        wanted = common(value.type for value in values)
        if wanted is None:
            refuse(node, f"{' and '.join(str(v.type) for v in values)} in {node.sql('spark')}")
        return [self.to(value, wanted, node) for value in values], wanted

    def call(
        self,
        node: exp.Expr,
        name: str,
        arguments: Sequence[exp.Expr],
        scope: SqlScope,
        suffix: str = "",
    ) -> TypedSql:
        """Translate a call of a function."""
        function = FUNCTIONS.get(name.lower())
        if function is None or function.kind == "window" or (suffix and function.kind == "scalar"):
            refuse(node, f"function {name}")
        if not function.least <= len(arguments) <= function.most:
            refuse(node, f"function {name} with {len(arguments)} arguments")
        return function.build(Call(self, node, name.lower(), tuple(arguments), scope, suffix))

    # Names and literals

    def _column(self, node: exp.Column, scope: SqlScope) -> TypedSql:
        names = [part.name for part in node.parts]
        for used in (2, 1) if len(names) > 1 else (1,):
            found = scope.find(names[used - 1], names[0] if used == 2 else None)
            if len(found) > 1:
                raise fault("AMBIGUOUS_COLUMN", at=location_of(node), name=".".join(names[:used]))
            if found:
                value = found[0]
                for part in names[used:]:
                    value = self.field(value, part, node)
                if not value.type.is_known:
                    refuse(node, f"type {value.type} of column {names[-1]!r}")
                return value
        wanted = ".".join(names)
        known = scope.names()
        raise unknown_column(wanted, known, node)

    def _identifier(self, node: exp.Identifier, scope: SqlScope) -> TypedSql:
        return self._column(exp.column(node.copy()), scope)

    def _dot(self, node: exp.Dot, scope: SqlScope) -> TypedSql:
        if not isinstance(node.expression, exp.Identifier):
            refuse(node)
        return self.field(self.translate(node.this, scope), node.expression.name, node)

    def field(self, value: TypedSql, name: str, node: exp.Expr) -> TypedSql:
        """Take a field of a struct."""
        if value.type.kind != "struct":
            refuse(node, f"field {name!r} of a value of type {value.type}")
        for own, kind in value.type.parts:
            if own.lower() == name.lower():
                key = own.replace("'", "''")
                text = f"struct_extract({value.text}, '{key}')"
                return TypedSql(f"seen({text})" if kind.kind in ("float", "double") else text, kind)
        known = [own for own, _ in value.type.parts]
        raise unknown_column(name, known, node)

    def _literal(self, node: exp.Literal, scope: SqlScope) -> TypedSql:  # noqa: ARG002
        return translate_literal(node)

    def _null(self, node: exp.Null, scope: SqlScope) -> TypedSql:  # noqa: ARG002
        return TypedSql("NULL", VOID)

    def _boolean(self, node: exp.Boolean, scope: SqlScope) -> TypedSql:  # noqa: ARG002
        return TypedSql("TRUE" if node.this else "FALSE", BOOLEAN)

    def _hex_string(self, node: exp.HexString, scope: SqlScope) -> TypedSql:  # noqa: ARG002
        return TypedSql(f"unhex('{node.this}')", Type("binary"))

    def _interval(self, node: exp.Interval, scope: SqlScope) -> TypedSql:  # noqa: ARG002
        return translate_interval(node)

    def _paren(self, node: exp.Paren, scope: SqlScope) -> TypedSql:
        inner = self.translate(node.this, scope)
        return TypedSql(f"({inner.text})", inner.type)

    # Conditions

    def _and(self, node: exp.And, scope: SqlScope) -> TypedSql:
        return self._joined(node, "AND", scope)

    def _or(self, node: exp.Or, scope: SqlScope) -> TypedSql:
        return self._joined(node, "OR", scope)

    def _joined(self, node: exp.Binary, word: str, scope: SqlScope) -> TypedSql:
        left, right = (self.condition(side, scope) for side in (node.left, node.right))
        return TypedSql(f"({left} {word} {right})", BOOLEAN)

    def _not(self, node: exp.Not, scope: SqlScope) -> TypedSql:
        return TypedSql(f"(NOT {self.condition(node.this, scope)})", BOOLEAN)

    def _is(self, node: exp.Is, scope: SqlScope) -> TypedSql:
        value, other = self.translate(node.this, scope), node.expression
        if isinstance(other, exp.Null):
            return TypedSql(f"({value.text} IS NULL)", BOOLEAN)
        if isinstance(other, exp.Boolean):
            kind = self.to(value, BOOLEAN, node)
            return TypedSql(f"({kind} IS {'TRUE' if other.this else 'FALSE'})", BOOLEAN)
        return refuse(node)

    def _compare(self, node: exp.Expr, sign: str, scope: SqlScope) -> TypedSql:
        sides = [self.translate(side, scope) for side in (node.this, node.expression)]
        left, right = self.comparable(sides, node)
        return TypedSql(f"({left} {sign} {right})", BOOLEAN)

    def comparable(self, values: Sequence[TypedSql], node: exp.Expr) -> list[str]:
        """Cast values that are compared to their common type."""
        texts, kind = self.alike(values, node)
        if kind.kind not in (*ORDERED, "interval", "binary"):
            refuse(node, f"comparison of {kind}")
        return texts

    def _between(self, node: exp.Between, scope: SqlScope) -> TypedSql:
        if node.args.get("symmetric"):
            refuse(node)
        parts = [self.translate(n, scope) for n in (node.this, node.args["low"], node.args["high"])]
        low = self.comparable(parts[:2], node)
        high = self.comparable([parts[0], parts[2]], node)
        return TypedSql(f"({low[0]} >= {low[1]} AND {high[0]} <= {high[1]})", BOOLEAN)

    def _in(self, node: exp.In, scope: SqlScope) -> TypedSql:
        value = self.translate(node.this, scope)
        if query := node.args.get("query"):
            text, types = self._query(query, scope)
            if len(types) != 1 or types[0].kind not in ORDERED:
                refuse(node)
            kinds = {value.type.kind, types[0].kind}
            if common((types[0], value.type)) is None or ("string" in kinds and len(kinds) > 1):
                refuse(node, f"{value.type} IN a query of {types[0]}")
            return TypedSql(f"({value.text} IN ({text}))", BOOLEAN)
        if not node.expressions:
            refuse(node)
        texts = self.comparable(
            [value, *(self.translate(n, scope) for n in node.expressions)], node
        )
        return TypedSql(f"({texts[0]} IN ({', '.join(texts[1:])}))", BOOLEAN)

    def _exists(self, node: exp.Exists, scope: SqlScope) -> TypedSql:
        return TypedSql(f"EXISTS ({self._query(node.this, scope)[0]})", BOOLEAN)

    def _subquery(self, node: exp.Subquery, scope: SqlScope) -> TypedSql:
        text, types = self._query(node.this, scope)
        if len(types) != 1:
            refuse(node, "a subquery of several columns as a value")
        return TypedSql(f"({text})", types[0])

    def _like(self, node: exp.Like, scope: SqlScope) -> TypedSql:
        return like(self, node, scope, "LIKE")

    def _ilike(self, node: exp.ILike, scope: SqlScope) -> TypedSql:
        return like(self, node, scope, "ILIKE")

    def _escape(self, node: exp.Escape, scope: SqlScope) -> TypedSql:
        if not isinstance(node.this, exp.Like) or not isinstance(node.expression, exp.Literal):
            refuse(node)
        return like(self, node.this, scope, "LIKE", escape=node.expression.name)

    def _regexp_like(self, node: exp.RegexpLike, scope: SqlScope) -> TypedSql:
        return regexp_like(self, node, scope)

    # Numbers

    def _arithmetic(self, node: exp.Expr, sign: str, scope: SqlScope) -> TypedSql:
        left, right = (self.translate(side, scope) for side in (node.this, node.expression))
        return translate_arithmetic(self, sign, left, right, node)

    def _int_div(self, node: exp.IntDiv, scope: SqlScope) -> TypedSql:
        sides = [self.translate(side, scope) for side in (node.this, node.expression)]
        if any(side.type.kind not in INTEGRAL for side in sides):
            refuse(node, f"{sides[0].type} div {sides[1].type}")
        one, other = (self.to(side, Type("bigint"), node) for side in sides)
        return TypedSql(f"({one} // {other})", Type("bigint"))

    def _neg(self, node: exp.Neg, scope: SqlScope) -> TypedSql:
        value = self.translate(node.this, scope)
        if not value.type.is_numeric:
            refuse(node, f"minus {value.type}")
        negative = -value.literal if isinstance(value.literal, int) else None
        return TypedSql(f"(-{value.text})", value.type, negative)

    def _bitwise_and(self, node: exp.BitwiseAnd, scope: SqlScope) -> TypedSql:
        return self._bits(node, "&", scope)

    def _bitwise_or(self, node: exp.BitwiseOr, scope: SqlScope) -> TypedSql:
        return self._bits(node, "|", scope)

    def _bits(self, node: exp.Binary, sign: str, scope: SqlScope) -> TypedSql:
        (one, other), kind = self.alike(
            [self.translate(n, scope) for n in (node.left, node.right)], node
        )
        if kind.kind not in INTEGRAL:
            refuse(node)
        return TypedSql(f"({one} {sign} {other})", kind)

    # Text, choices and casts

    def _dpipe(self, node: exp.DPipe, scope: SqlScope) -> TypedSql:
        sides = [self.translate(side, scope) for side in (node.this, node.expression)]
        return self.concatenated(sides, node)

    def concatenated(self, values: Sequence[TypedSql], node: exp.Expr) -> TypedSql:
        """Concatenate texts, or arrays; NULL if any is NULL."""
        if any(value.type.kind == "array" for value in values):
            texts, kind = self.alike(values, node)
            empty = " OR ".join(f"{text} IS NULL" for text in texts)
            return TypedSql(f"CASE WHEN {empty} THEN NULL ELSE {' || '.join(texts)} END", kind)
        if any(value.type.kind == "binary" for value in values):
            refuse(node, "concat of binary")
        texts = [cast(value.text, value.type, STRING) or refuse(node) for value in values]
        return TypedSql(f"({' || '.join(texts)})", STRING)

    def _case(self, node: exp.Case, scope: SqlScope) -> TypedSql:
        subject = self.translate(node.this, scope) if node.this else None
        conditions, values = [], []
        for choice in node.args["ifs"]:
            if subject is None:
                conditions.append(self.condition(choice.this, scope))
            else:
                pair = self.comparable([subject, self.translate(choice.this, scope)], choice)
                conditions.append(" = ".join(pair))
            values.append(self.translate(choice.args["true"], scope))
        default = node.args.get("default")
        values.append(self.translate(default, scope) if default else TypedSql("NULL", VOID))
        return self.chosen(conditions, values, node)

    def chosen(
        self, conditions: Sequence[str], values: Sequence[TypedSql], node: exp.Expr
    ) -> TypedSql:
        """Choose the first value whose condition holds, else the last."""
        texts, kind = self.alike(values, node)
        whens = (f"WHEN {c} THEN {text}" for c, text in zip(conditions, texts, strict=False))
        return TypedSql(f"CASE {' '.join(whens)} ELSE {texts[-1]} END", kind)

    def _if(self, node: exp.If, scope: SqlScope) -> TypedSql:
        default = node.args.get("false") or exp.Null()
        values = [self.translate(n, scope) for n in (node.args["true"], default)]
        return self.chosen([self.condition(node.this, scope)], values, node)

    def _cast(self, node: exp.Cast, scope: SqlScope) -> TypedSql:
        return self._casted(node, scope, is_try=False)

    def _try_cast(self, node: exp.TryCast, scope: SqlScope) -> TypedSql:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self._casted(node, scope, is_try=False)
        return self._casted(node, scope, is_try=True)

    def _casted(self, node: exp.Cast, scope: SqlScope, *, is_try: bool) -> TypedSql:
        value = self.translate(node.this, scope)
        wanted = type_of(node.to)
        if wanted is None or node.args.get("format"):
            refuse(node)
        text = cast(value.text, value.type, wanted, is_try=is_try, literal=value.literal)
        if text is None:
            refuse(node, f"the cast of {value.type} to {wanted}")
        return TypedSql(text, wanted)

    # Calls

    def _anonymous(self, node: exp.Anonymous, scope: SqlScope) -> TypedSql:
        return self.call(node, str(node.this), node.expressions, scope)

    def _filter(self, node: exp.Filter, scope: SqlScope) -> TypedSql:
        if not isinstance(node.this, exp.Anonymous):
            refuse(node)
        suffix = f" FILTER (WHERE {self.condition(node.expression.this, scope)})"
        return self.call(node.this, node.this.name, node.this.expressions, scope, suffix)

    def _window(self, node: exp.Window, scope: SqlScope) -> TypedSql:
        return translate_window(self, node, scope)

    def _bracket(self, node: exp.Bracket, scope: SqlScope) -> TypedSql:
        return self.call(node, "[]", [node.this, *node.expressions], scope)

    def _extract(self, node: exp.Extract, scope: SqlScope) -> TypedSql:
        part = node.this.name.lower()
        if part not in ("year", "quarter", "month", "week", "day", "hour", "minute", "dayofweek"):
            refuse(node)
        name = {"week": "weekofyear"}.get(part, part)
        return self.call(node, name, [node.expression], scope)

    def _substring(self, node: exp.Substring, scope: SqlScope) -> TypedSql:
        arguments = [node.this, node.args["start"], node.args.get("length")]
        return self.call(node, "substring", [part for part in arguments if part], scope)

    def _str_position(self, node: exp.StrPosition, scope: SqlScope) -> TypedSql:
        if node.args.get("position") or node.args.get("occurrence"):
            refuse(node)
        return self.call(node, "instr", [node.this, node.args["substr"]], scope)

    def _trim(self, node: exp.Trim, scope: SqlScope) -> TypedSql:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
        if node.expression:
            refuse(node)
        return self.call(node, name, [node.this], scope)

    def _current_date(self, node: exp.CurrentDate, scope: SqlScope) -> TypedSql:  # noqa: ARG002
        return TypedSql("current_date", Type("date"))

    def _current_timestamp(self, node: exp.CurrentTimestamp, scope: SqlScope) -> TypedSql:  # noqa: ARG002
        return TypedSql("now()", Type("timestamp"))
