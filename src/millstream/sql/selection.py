"""One SELECT of Spark's SQL in DuckDB's: its sources, conditions, groups and columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.sql.column_name import column_name
from millstream.sql.functions import FUNCTIONS
from millstream.sql.join import join_relations
from millstream.sql.refusal import refuse, unknown_column
from millstream.sql.scope import SqlColumn, SqlScope, TypedSql
from millstream.sql.types import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.sql.expression import Expressions
    from millstream.sql.queries import Queries
    from millstream.sql.scope import Columns

_PARTS = {"expressions", "from_", "joins", "laterals", "where", "group", "having", "order", "limit",
          "offset", "distinct", "with_", "windows"}  # fmt: skip
_GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer")


@dataclass(frozen=True, slots=True)
class TranslatedQuery:
    """A query in DuckDB's SQL, and the columns it returns."""

    text: str
    columns: Columns


class SelectTranslator:
    """Translates one SELECT."""

    def __init__(
        self, queries: Queries, expressions: Expressions, node: exp.Select, outer: SqlScope | None
    ) -> None:
        self._queries, self._expressions, self._node = queries, expressions, node
        self._scope = SqlScope(outer=outer)
        self._from = ""
        self._generated = 0

    def translate(self) -> TranslatedQuery:
        """Translate it.

        Raises:
            SQL_NOT_TRANSLATED: Only Spark can answer it.
            UNKNOWN_COLUMN: It names a column that is not there.
            UNKNOWN_TABLE: It names a table that is not there.
        """
        node = self._node
        for key, value in node.args.items():
            if value and key not in _PARTS:
                refuse(node, key.strip("_").upper().replace("_", " "))
        self._resolve_windows()
        self._read()
        where = self._where()
        answers = self._answers()
        names = [quoted(name) for name, _ in answers]
        listed = ", ".join(f"{v.text} AS {n}" for n, (_, v) in zip(names, answers, strict=True))
        group = self._group(answers)
        having = self._having(answers)
        distinct = self._distinct(answers)
        text = f"SELECT {distinct}{listed}{self._from}{where}{group}{having}"
        if order := node.args.get("order"):
            text += " ORDER BY " + self._queries.sorted(order.expressions, answers, self._scope)
        return TranslatedQuery(
            text + limits(node), tuple((name, value.type) for name, value in answers)
        )

    def _resolve_windows(self) -> None:
        """Replace the names of windows by their definitions."""
        named = {w.name.lower(): w for w in self._node.args.get("windows") or ()}
        for window in self._node.find_all(exp.Window):
            held = (
                named.get(window.args["alias"].name.lower()) if window.args.get("alias") else None
            )
            if held is not None and held is not window:
                for key in ("partition_by", "order", "spec"):
                    window.set(key, held.args.get(key))
                window.set("alias", None)

    def _read(self) -> None:
        start = self._node.args.get("from_")
        if start is None:
            return
        read = self._queries.relation(start.this)
        for join in self._node.args.get("joins") or ():
            if isinstance(join.this, exp.Lateral):
                refuse(join)
            other = self._queries.relation(join.this)
            read = join_relations(read, other, join, self._expressions, self._scope.outer)
        self._from = f" FROM {read.text}"
        self._scope = replace(self._scope, columns=read.columns, hidden=read.hidden)
        for lateral in self._node.args.get("laterals") or ():
            self._lateral(lateral)

    def _lateral(self, lateral: exp.Lateral) -> None:
        call, alias = lateral.this, lateral.args.get("alias")
        if not lateral.args.get("view") or not isinstance(call, exp.Anonymous) or alias is None:
            refuse(lateral)
        if call.name.lower() not in _GENERATORS:
            refuse(lateral)
        if lateral.args.get("outer") and not call.name.lower().endswith("outer"):
            call = exp.Anonymous(this=call.name + "_outer", expressions=call.expressions)
        names = [column.name for column in alias.columns]
        made = self._generate(call, names, alias.name or f"_g{self._generated}")
        self._scope = replace(self._scope, columns=(*self._scope.columns, *made))

    def _generate(
        self, call: exp.Anonymous, names: Sequence[str], alias: str
    ) -> tuple[SqlColumn, ...]:
        made = self._queries.generator(call, names, alias, self._scope)
        if not self._from:
            self._from = " FROM (SELECT 1)"
        self._from += made.text
        self._generated += 1
        return made.columns

    def _where(self) -> str:
        """Translate WHERE; rows without a timestamp are in no window."""
        clause = self._node.args.get("where")
        conditions = [self._expressions.condition(clause.this, self._scope)] if clause else []
        group = self._node.args.get("group")
        for part in (*self._node.expressions, *(group.expressions if group else ())):
            for call in part.find_all(exp.Anonymous):
                if call.name.lower() == "window" and call.expressions:
                    moment = self._expressions.translate(call.expressions[0], self._scope)
                    conditions.append(f"{moment.text} IS NOT NULL")
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _having(self, answers: Sequence[tuple[str, TypedSql]]) -> str:
        """Translate HAVING; a name that is of a table and of the answer too is not decided here."""
        clause = self._node.args.get("having")
        if clause is None:
            return ""
        named = {name.lower(): value.text for name, value in answers}
        for column in clause.find_all(exp.Column):
            key = column.name.lower()
            found = [c.value.text for c in self._scope.columns if c.is_named(key)]
            if not column.table and key in named and found and [named[key]] != found:
                refuse(column, f"{column.name!r} in HAVING, a column and a name of the answer")
        return f" HAVING {self._expressions.condition(clause.this, self._scope)}"

    def _answers(self) -> list[tuple[str, TypedSql]]:
        self._name_the_window()
        answers: list[tuple[str, TypedSql]] = []
        for node in self._node.expressions:
            inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                answers += self._star(inner)
            elif isinstance(inner, exp.Anonymous) and inner.name.lower() in _GENERATORS:
                answers += self._exploded(node, inner)
            else:
                name = column_name(node, lambda name: bool(self._scope.of_table(name)))
                value = self._expressions.translate(inner, self._scope)
                answers.append((name, value))
                if isinstance(node, exp.Alias):
                    self._scope.aliases[name.lower()] = value
        return answers

    def _name_the_window(self) -> None:
        """Let `window` mean the window that is grouped by, as Spark does."""
        group = self._node.args.get("group")
        for key in group.expressions if group else ():
            if isinstance(key, exp.Anonymous) and key.name.lower() == "window":
                self._scope.aliases["window"] = self._expressions.translate(key, self._scope)

    def _exploded(self, node: exp.Expr, call: exp.Anonymous) -> list[tuple[str, TypedSql]]:
        if self._generated or self._node.args.get("group"):
            refuse(node, "a second generator, or one with GROUP BY")
        names = [node.alias] if isinstance(node, exp.Alias) else []
        if isinstance(node, exp.Aliases):
            names = [alias.name for alias in node.expressions]
        return [(c.name, c.value) for c in self._generate(call, names, "_generated")]

    def _star(self, node: exp.Expr) -> list[tuple[str, TypedSql]]:
        star = node if isinstance(node, exp.Star) else node.this
        if star.args.get("replace") or star.args.get("rename"):
            refuse(node)
        columns = self._scope.columns
        if isinstance(node, exp.Column):
            columns = tuple(self._scope.of_table(node.table) or self._fields(node))
        for column in columns:
            if not column.value.type.is_known:
                refuse(node, f"type {column.value.type}")
        of_star = SqlScope(columns)
        left_out = {
            self._expressions.translate(exp.column(named.copy()), of_star).text
            for named in star.args.get("except_") or ()
        }
        return [(c.name, c.value) for c in columns if c.value.text not in left_out]

    def _fields(self, node: exp.Column) -> Iterator[SqlColumn]:
        """Return the columns of `struct.*`."""
        value = self._expressions.translate(exp.column(node.args["table"].copy()), self._scope)
        for name, _ in value.type.parts:
            yield SqlColumn(name, self._expressions.field(value, name, node), None)

    def _distinct(self, answers: Sequence[tuple[str, TypedSql]]) -> str:
        distinct = self._node.args.get("distinct")
        if not distinct:
            return ""
        if distinct.args.get("on") or any(value.type.kind == "map" for _, value in answers):
            refuse(self._node, "DISTINCT of this kind")
        return "DISTINCT "

    def _group(self, answers: Sequence[tuple[str, TypedSql]]) -> str:
        group = self._node.args.get("group")
        if group is None:
            return ""
        if group.args.get("all"):
            kept = (
                v.text
                for n, (_, v) in zip(self._node.expressions, answers, strict=True)
                if not _is_aggregate(n)
            )
            return f" GROUP BY {', '.join(kept)}"
        keys = [self._key(key, answers) for key in group.expressions]
        if any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets", "totals")):
            refuse(self._node, "this form of GROUP BY")
        return f" GROUP BY {', '.join(keys)}"

    def _key(self, key: exp.Expr, answers: Sequence[tuple[str, TypedSql]]) -> str:
        if isinstance(key, exp.Tuple | exp.Paren):
            parts = key.expressions if isinstance(key, exp.Tuple) else [key.this]
            return f"({', '.join(self._key(part, answers) for part in parts)})"
        if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
            if isinstance(key, exp.GroupingSets) and self._node.args["group"].expressions[1:]:
                refuse(key, "GROUPING SETS beside other keys")
            word = "GROUPING SETS" if isinstance(key, exp.GroupingSets) else type(key).__name__
            return f"{word} ({', '.join(self._key(part, answers) for part in key.expressions)})"
        value = column_by_position(key, answers) or self._expressions.translate(key, self._scope)
        if value.type.kind == "map":
            refuse(key, "a group of maps")
        return value.text


def _is_aggregate(node: exp.Expr) -> bool:
    return any(
        isinstance(call, exp.Anonymous)
        and (known := FUNCTIONS.get(call.name.lower())) is not None
        and known.kind == "aggregate"
        for call in node.find_all(exp.Anonymous)
    )


def column_by_position(key: exp.Expr, answers: Sequence[tuple[str, TypedSql]]) -> TypedSql | None:
    """Return the column that a number in GROUP BY or ORDER BY stands for."""
    if not isinstance(key, exp.Literal) or key.is_string or not key.name.isdigit():
        return None
    if not 1 <= int(key.name) <= len(answers):
        known = [name for name, _ in answers]
        raise unknown_column(key.name, known, key)
    return answers[int(key.name) - 1][1]


def limits(node: exp.Expr) -> str:
    """Translate LIMIT and OFFSET."""
    clauses = ""
    for key in ("limit", "offset"):
        if part := node.args.get(key):
            if not isinstance(part.expression, exp.Literal) or not part.expression.name.isdigit():
                refuse(node, key.upper())
            clauses += f" {key.upper()} {part.expression.name}"
    return clauses
