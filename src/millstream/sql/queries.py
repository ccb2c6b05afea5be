"""Whole queries of Spark's SQL in DuckDB's: what they select from, group by and sort by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from millstream.sql.cast import cast
from millstream.sql.expression import Expressions
from millstream.sql.refusal import refuse
from millstream.sql.scope import Columns, Relation, SqlScope, TypedSql, distinct_names
from millstream.sql.selection import SelectTranslator, TranslatedQuery, column_by_position, limits
from millstream.sql.types import INT, ORDERED, Type, common, quoted
from millstream.sql.window import direction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Tables(Protocol):
    """Knows the stored tables."""

    def read(self, table: exp.Table) -> tuple[str, Columns]:
        """Return how DuckDB reads a table, and which columns it has."""


class Queries:
    """Translates queries over stored tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._expressions = Expressions(self._inner)
        self._ctes: list[dict[str, Columns]] = [{}]
        self._numbers = iter(range(1_000_000))

    def translate(self, query: exp.Expr, outer: SqlScope | None = None) -> TranslatedQuery:
        """Translate a query.

        Raises:
            SQL_NOT_TRANSLATED: Only Spark can answer it.
            UNKNOWN_COLUMN: It names a column that is not there.
            UNKNOWN_TABLE: It names a table that is not there.
        """
        self._ctes.append(dict(self._ctes[-1]))
        try:
            head = self._with(query.args.get("with_"), outer)
            if isinstance(query, exp.Select):
                answer = SelectTranslator(self, self._expressions, query, outer).translate()
            elif isinstance(query, exp.SetOperation):
                answer = self._set_operation(query, outer)
            elif isinstance(query, exp.Subquery) and not query.alias:
                answer = self._tail(self.translate(query.this, outer), query, outer)
            elif isinstance(query, exp.Values):
                answer = self._values(query)
            else:
                refuse(query)
            return TranslatedQuery(head + answer.text, answer.columns)
        finally:
            self._ctes.pop()

    def _inner(self, node: exp.Expr, scope: SqlScope) -> tuple[str, list[Type]]:
        answer = self.translate(node, scope)
        return answer.text, [kind for _, kind in answer.columns]

    def _with(self, node: exp.With | None, outer: SqlScope | None) -> str:
        if node is None:
            return ""
        if node.args.get("recursive"):
            refuse(node, "WITH RECURSIVE")
        ctes = []
        for cte in node.expressions:
            answer = self.translate(cte.this, outer)
            columns = _renamed(answer.columns, cte.args["alias"])
            self._ctes[-1][cte.alias.lower()] = columns
            names = ", ".join(quoted(name) for name in distinct_names(name for name, _ in columns))
            ctes.append(f"{quoted(cte.alias)}({names}) AS ({answer.text})")
        return f"WITH {', '.join(ctes)} "

    def relation(self, node: exp.Expr) -> Relation:
        """Translate one thing of FROM."""
        if any(node.args.get(key) for key in ("pivots", "sample", "joins", "hints")):
            refuse(node)
        table_alias = node.args.get("alias")
        if isinstance(node, exp.Table):
            if not isinstance(node.this, exp.Identifier):
                refuse(node)
            cte = (
                None
                if node.args.get("db") or node.args.get("version")
                else self._ctes[-1].get(node.name.lower())
            )
            text, columns = (quoted(node.name), cte) if cte is not None else self._tables.read(node)
            alias = node.alias or node.name
        elif isinstance(node, exp.Subquery | exp.Values):
            inner = node.this if isinstance(node, exp.Subquery) else node
            answer = (
                self._values(node) if isinstance(node, exp.Values) else self.translate(inner, None)
            )
            text, columns = f"({answer.text})", answer.columns
            alias = node.alias or f"_q{next(self._numbers)}"
        else:
            refuse(node)
        return Relation.of(text, alias, _renamed(columns, table_alias))

    def generator(
        self, call: exp.Anonymous, names: Sequence[str], alias: str, scope: SqlScope
    ) -> Relation:
        """Translate explode and its like to something that FROM joins."""
        function = call.name.lower()
        if len(call.expressions) != 1:
            refuse(call)
        value = self._expressions.translate(call.expressions[0], scope)
        if value.type.kind == "array":
            inner = f"unnest({value.text}) AS col"
            columns: Columns = (("col", value.type["element"]),)
            length = f"len({value.text})"
        elif value.type.kind == "map":
            inner = (
                f"unnest(map_keys({value.text})) AS key, unnest(map_values({value.text})) AS value"
            )
            columns = value.type.parts
            length = f"cardinality({value.text})"
        else:
            refuse(call, f"{function} of {value.type}")
        if function.startswith("pos"):
            inner = f"CAST(unnest(range({length})) AS INTEGER) AS pos, {inner}"
            columns = (("pos", INT), *columns)
        if names:
            if len(names) != len(columns):
                refuse(call)
            columns = tuple((n, kind) for n, (_, kind) in zip(names, columns, strict=True))
        made = Relation.of(f"LATERAL (SELECT {inner})", alias, columns)
        side = "LEFT" if function.endswith("outer") else "INNER"
        return replace(made, text=f" {side} JOIN {made.text} ON TRUE")

    def _values(self, node: exp.Values) -> TranslatedQuery:
        rows = [
            [self._expressions.translate(v, SqlScope()) for v in row.expressions]
            if isinstance(row, exp.Tuple)
            else [self._expressions.translate(row.unnest(), SqlScope())]
            for row in node.expressions
        ]
        if len({len(row) for row in rows}) != 1:
            refuse(node, "VALUES of differing lengths")
        alike = [self._expressions.alike(column, node) for column in zip(*rows, strict=True)]
        columns = tuple((f"col{i}", kind) for i, (_, kind) in enumerate(alike, 1))
        by_row = zip(*(texts for texts, _ in alike), strict=True)
        listed = ", ".join("(" + ", ".join(row) + ")" for row in by_row)
        return TranslatedQuery(f"VALUES {listed}", columns)

    def _set_operation(self, node: exp.SetOperation, outer: SqlScope | None) -> TranslatedQuery:
        if node.args.get("by_name") or node.args.get("on") or node.args.get("side"):
            refuse(node)
        left, right = (self.translate(side, outer) for side in (node.left, node.right))
        if len(left.columns) != len(right.columns):
            refuse(node, "a set operation on queries of differing width")
        columns = []
        for (name, one), (_, other) in zip(left.columns, right.columns, strict=True):
            wanted = common((one, other))
            if wanted is None or (
                "string" in {one.kind, other.kind} - {"void"} and one.kind != other.kind
            ):
                refuse(node, f"{one} and {other} in one column {name!r}")
            keeps_all = isinstance(node, exp.Union) and not node.args.get("distinct")
            if wanted.kind == "map" and not keeps_all:
                refuse(node, "a set operation on maps")
            columns.append((name, wanted))
        word = type(node).__name__.upper() + ("" if node.args.get("distinct") else " ALL")
        sides = [_recast(side, columns, node) for side in (left, right)]
        text = f"({sides[0]}) {word} ({sides[1]})"
        return self._tail(TranslatedQuery(text, tuple(columns)), node, outer)

    def _tail(
        self, answer: TranslatedQuery, node: exp.Expr, outer: SqlScope | None
    ) -> TranslatedQuery:
        """Add ORDER BY, LIMIT and OFFSET to a query."""
        order = node.args.get("order")
        if not any(node.args.get(key) for key in ("order", "limit", "offset")):
            return answer
        whole = Relation.of(f"({answer.text})", "_s", answer.columns)
        text = f"SELECT * FROM {whole.text}"
        if order:
            answers = [(column.name, column.value) for column in whole.columns]
            scope = SqlScope(whole.columns, outer=outer)
            text += " ORDER BY " + self.sorted(order.expressions, answers, scope)
        return TranslatedQuery(text + limits(node), answer.columns)

    def sorted(
        self, keys: Iterable[exp.Ordered], answers: Sequence[tuple[str, TypedSql]], scope: SqlScope
    ) -> str:
        """Translate ORDER BY: a name means a selected column first, a number its position."""
        inside = scope.inside(answers)
        parts = []
        for key in keys:
            value = column_by_position(key.this, answers) or self._expressions.translate(
                key.this, inside
            )
            if value.type.kind not in ORDERED:
                refuse(key, f"an order of {value.type}")
            parts.append(value.text + direction(key))
        return ", ".join(parts)


def _renamed(columns: Columns, alias: exp.TableAlias | None) -> Columns:
    names = [column.name for column in alias.columns] if alias else []
    if not names:
        return columns
    if len(names) != len(columns):
        refuse(alias or exp.Null(), f"{len(names)} names for {len(columns)} columns")
    return tuple((name, kind) for name, (_, kind) in zip(names, columns, strict=True))


def _recast(answer: TranslatedQuery, wanted: Sequence[tuple[str, Type]], node: exp.Expr) -> str:
    if [kind for _, kind in answer.columns] == [kind for _, kind in wanted]:
        return answer.text
    names = [f"c{i}" for i in range(len(wanted))]
    casts = []
    for name, (_, found), (own, kind) in zip(names, answer.columns, wanted, strict=True):
        text = cast(f"_u.{name}", found, kind) or refuse(node, f"{found} as {kind}")
        casts.append(f"{text} AS {quoted(own)}")
    return f"SELECT {', '.join(casts)} FROM ({answer.text}) AS _u({', '.join(names)})"
