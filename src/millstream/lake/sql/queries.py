"""Whole queries of Spark's SQL in DuckDB's: what they select from, group by and sort by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from millstream.errors import UnknownColumnError
from millstream.lake.sql.cast import cast
from millstream.lake.sql.expression import Expressions
from millstream.lake.sql.function import FUNCTIONS
from millstream.lake.sql.name import name_of
from millstream.lake.sql.refusal import place, refuse
from millstream.lake.sql.scope import Columns, Scope, Source, Typed
from millstream.lake.sql.types import INT, ORDERED, Type, common, quoted
from millstream.lake.sql.window import direction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PARTS = {"expressions", "from_", "joins", "laterals", "where", "group", "having", "order", "limit",
          "offset", "distinct", "with_", "windows"}  # fmt: skip
_GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer")


class Tables(Protocol):
    """Knows the stored tables."""

    def read(self, table: exp.Table) -> tuple[str, Columns]:
        """Say how DuckDB reads a table, and which columns it has."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A query in DuckDB's SQL, and the columns of its answer."""

    text: str
    columns: Columns


class Queries:
    """Translates queries over stored tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._expressions = Expressions(self._inner)
        self._ctes: list[dict[str, Columns]] = [{}]
        self._numbers = iter(range(1_000_000))

    def translate(self, query: exp.Expr, outer: Scope | None = None) -> Answer:
        """Translate a query.

        Raises:
            SqlNotTranslatedError: Only Spark can answer it.
            UnknownColumnError: It names a column that is not there.
            UnknownTableError: It names a table that is not there.
        """
        self._ctes.append(dict(self._ctes[-1]))
        try:
            head = self._with(query.args.get("with_"), outer)
            if isinstance(query, exp.Select):
                answer = _Selection(self, self._expressions, query, outer).translate()
            elif isinstance(query, exp.SetOperation):
                answer = self._set_operation(query, outer)
            elif isinstance(query, exp.Subquery) and not query.alias:
                answer = self._tail(self.translate(query.this, outer), query, outer)
            elif isinstance(query, exp.Values):
                answer = self._values(query)
            else:
                refuse(query)
            return Answer(head + answer.text, answer.columns)
        finally:
            self._ctes.pop()

    def _inner(self, node: exp.Expr, scope: Scope) -> tuple[str, list[Type]]:
        answer = self.translate(node, scope)
        return answer.text, [kind for _, kind in answer.columns]

    def _with(self, node: exp.With | None, outer: Scope | None) -> str:
        if node is None:
            return ""
        if node.args.get("recursive"):
            refuse(node, "WITH RECURSIVE")
        told = []
        for cte in node.expressions:
            answer = self.translate(cte.this, outer)
            columns = _renamed(answer.columns, cte.args["alias"])
            self._ctes[-1][cte.alias.lower()] = columns
            names = ", ".join(quoted(name) for name, _ in columns)
            told.append(f"{quoted(cte.alias)}({names}) AS ({answer.text})")
        return f"WITH {', '.join(told)} "

    def source(self, node: exp.Expr) -> tuple[str, Source]:
        """Translate one thing of FROM."""
        if node.args.get("pivots") or node.args.get("sample") or node.args.get("joins"):
            refuse(node)
        given = node.args.get("alias")
        if isinstance(node, exp.Table):
            if not isinstance(node.this, exp.Identifier):
                refuse(node)
            held = (
                None
                if node.args.get("db") or node.args.get("version")
                else self._ctes[-1].get(node.name.lower())
            )
            text, columns = (
                (quoted(node.name), held) if held is not None else self._tables.read(node)
            )
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
        columns = _renamed(columns, given)
        names = ", ".join(quoted(name) for name, _ in columns)
        return f"{text} AS {quoted(alias)}({names})", Source(alias, columns)

    def generator(
        self, call: exp.Anonymous, names: Sequence[str], alias: str, scope: Scope
    ) -> tuple[str, Source]:
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
        listed = ", ".join(quoted(name) for name, _ in columns)
        join = "LEFT JOIN" if function.endswith("outer") else "CROSS JOIN"
        on = " ON TRUE" if join == "LEFT JOIN" else ""
        text = f" {join} LATERAL (SELECT {inner}) AS {quoted(alias)}({listed}){on}"
        return text, Source(alias, columns)

    def _values(self, node: exp.Values) -> Answer:
        rows = [
            [self._expressions.translate(v, Scope()) for v in row.expressions]
            if isinstance(row, exp.Tuple)
            else [self._expressions.translate(row.unnest(), Scope())]
            for row in node.expressions
        ]
        if len({len(row) for row in rows}) != 1:
            refuse(node, "VALUES of differing lengths")
        alike = [self._expressions.alike(column, node) for column in zip(*rows, strict=True)]
        columns = tuple((f"col{i}", kind) for i, (_, kind) in enumerate(alike, 1))
        told = zip(*(texts for texts, _ in alike), strict=True)
        listed = ", ".join("(" + ", ".join(row) + ")" for row in told)
        return Answer(f"VALUES {listed}", columns)

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> Answer:
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
        return self._tail(Answer(text, tuple(columns)), node, outer)

    def _tail(self, answer: Answer, node: exp.Expr, outer: Scope | None) -> Answer:
        """Sort and cut an answer."""
        order = node.args.get("order")
        if not any(node.args.get(key) for key in ("order", "limit", "offset")):
            return answer
        names = ", ".join(quoted(name) for name, _ in answer.columns)
        scope = Scope([Source("_s", answer.columns)], outer)
        text = f"SELECT * FROM ({answer.text}) AS _s({names})"
        if order:
            answers = [(n, Typed(f"_s.{quoted(n)}", kind)) for n, kind in answer.columns]
            text += " ORDER BY " + self.sorted(order.expressions, answers, scope)
        return Answer(text + cut(node), answer.columns)

    def sorted(
        self, keys: Iterable[exp.Ordered], answers: Sequence[tuple[str, Typed]], scope: Scope
    ) -> str:
        """Translate ORDER BY: names mean the answer first, numbers its columns."""
        inside = scope.inside({name.lower(): value for name, value in reversed(answers)})
        told = []
        for key in keys:
            value = numbered(key.this, answers) or self._expressions.translate(key.this, inside)
            if value.type.kind not in ORDERED:
                refuse(key, f"an order of {value.type}")
            told.append(value.text + direction(key))
        return ", ".join(told)


class _Selection:
    """One SELECT on its way to DuckDB."""

    def __init__(
        self, queries: Queries, expressions: Expressions, node: exp.Select, outer: Scope | None
    ) -> None:
        self._queries, self._expressions, self._node = queries, expressions, node
        self._scope = Scope(outer=outer)
        self._from = ""
        self._generated = 0

    def translate(self) -> Answer:
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
        return Answer(text + cut(node), tuple((name, value.type) for name, value in answers))

    def _resolve_windows(self) -> None:
        """Put named windows where they are used."""
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
        text, source = self._queries.source(start.this)
        self._from = f" FROM {text}"
        self._scope.sources.append(source)
        for join in self._node.args.get("joins") or ():
            self._join(join)
        for lateral in self._node.args.get("laterals") or ():
            self._lateral(lateral)

    def _join(self, join: exp.Join) -> None:
        side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
        if join.args.get("method") or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
            refuse(join)
        if isinstance(join.this, exp.Lateral):
            refuse(join)
        text, source = self._queries.source(join.this)
        half = kind in ("SEMI", "ANTI")
        before = Scope(list(self._scope.sources), merged=dict(self._scope.merged))
        self._scope.sources.append(source)
        on = self._on(join, before, source, side)
        if half:
            self._scope.sources.pop()
        word = f"{kind} JOIN" if half else f"{side} JOIN" if side else "JOIN"
        if not on and (half or side):
            refuse(join, "an outer join without ON")
        self._from += f" {word} {text} ON {on}" if on else f" CROSS JOIN {text}"

    def _on(self, join: exp.Join, before: Scope, source: Source, side: str) -> str:
        if on := join.args.get("on"):
            return self._expressions.condition(on, self._scope)
        told = []
        for name in join.args.get("using") or ():
            lefts, rights = before.find(name.name), list(source.column(name.name))
            if len(lefts) != 1 or len(rights) != 1:
                known = [n for n, _ in source.columns]
                raise UnknownColumnError(name.name, known=known, at=place(name))
            texts, kind = self._expressions.alike([lefts[0], rights[0]], join)
            told.append(f"{texts[0]} = {texts[1]}")
            both = {"RIGHT": rights[0].text, "FULL": f"coalesce({texts[0]}, {texts[1]})"}
            if str(join.args.get("kind") or "").upper() not in ("SEMI", "ANTI"):
                merged = Typed(both.get(side, lefts[0].text), kind)
                self._scope.merged[name.name.lower()] = merged
        return " AND ".join(told)

    def _lateral(self, lateral: exp.Lateral) -> None:
        call, alias = lateral.this, lateral.args.get("alias")
        if not lateral.args.get("view") or not isinstance(call, exp.Anonymous) or alias is None:
            refuse(lateral)
        if call.name.lower() not in _GENERATORS:
            refuse(lateral)
        if lateral.args.get("outer") and not call.name.lower().endswith("outer"):
            call = exp.Anonymous(this=call.name + "_outer", expressions=call.expressions)
        names = [column.name for column in alias.columns]
        self._generate(call, names, alias.name or f"_g{self._generated}")

    def _generate(self, call: exp.Anonymous, names: Sequence[str], alias: str) -> Source:
        text, source = self._queries.generator(call, names, alias, self._scope)
        if not self._from:
            self._from = " FROM (SELECT 1)"
        self._from += text
        self._generated += 1
        self._scope.sources.append(source)
        return source

    def _where(self) -> str:
        """Translate WHERE; rows without a moment are in no window."""
        clause = self._node.args.get("where")
        told = [self._expressions.condition(clause.this, self._scope)] if clause else []
        group = self._node.args.get("group")
        for part in (*self._node.expressions, *(group.expressions if group else ())):
            for call in part.find_all(exp.Anonymous):
                if call.name.lower() == "window" and call.expressions:
                    moment = self._expressions.translate(call.expressions[0], self._scope)
                    told.append(f"{moment.text} IS NOT NULL")
        return f" WHERE {' AND '.join(told)}" if told else ""

    def _having(self, answers: Sequence[tuple[str, Typed]]) -> str:
        """Translate HAVING; a name that is of a table and of the answer too is not decided here."""
        clause = self._node.args.get("having")
        if clause is None:
            return ""
        named = {name.lower(): value.text for name, value in answers}
        for column in clause.find_all(exp.Column):
            key = column.name.lower()
            found = [v.text for source in self._scope.sources for v in source.column(key)]
            if not column.table and key in named and found and [named[key]] != found:
                refuse(column, f"{column.name!r} in HAVING, a column and a name of the answer")
        return f" HAVING {self._expressions.condition(clause.this, self._scope)}"

    def _answers(self) -> list[tuple[str, Typed]]:
        self._name_the_window()
        answers: list[tuple[str, Typed]] = []
        sources = {source.alias.lower() for source in self._scope.sources}
        for node in self._node.expressions:
            inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                answers += self._star(inner)
            elif isinstance(inner, exp.Anonymous) and inner.name.lower() in _GENERATORS:
                answers += self._exploded(node, inner)
            else:
                name = name_of(node, lambda name: name.lower() in sources)
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

    def _exploded(self, node: exp.Expr, call: exp.Anonymous) -> list[tuple[str, Typed]]:
        if self._generated or self._node.args.get("group"):
            refuse(node, "a second generator, or one with GROUP BY")
        names = [node.alias] if isinstance(node, exp.Alias) else []
        if isinstance(node, exp.Aliases):
            names = [alias.name for alias in node.expressions]
        source = self._generate(call, names, "_generated")
        self._scope.sources.pop()
        return [(name, next(source.column(name))) for name, _ in source.columns]

    def _star(self, node: exp.Expr) -> list[tuple[str, Typed]]:
        star = node if isinstance(node, exp.Star) else node.this
        if star.args.get("replace") or star.args.get("rename"):
            refuse(node)
        left_out = {column.name.lower() for column in star.args.get("except_") or ()}
        found: list[tuple[str, Typed]] = []
        if isinstance(node, exp.Column):
            for source in self._scope.sources:
                if source.alias.lower() == node.table.lower():
                    found += [(name, next(source.column(name))) for name, _ in source.columns]
            if not found:
                value = self._expressions.translate(
                    exp.column(node.args["table"].copy()), self._scope
                )
                found = [
                    (name, self._expressions.field(value, name, node))
                    for name, _ in value.type.parts
                ]
        else:
            found = self._everything()
        for _, value in found:
            if not value.type.is_known:
                refuse(node, f"type {value.type}")
        return [(name, value) for name, value in found if name.lower() not in left_out]

    def _everything(self) -> list[tuple[str, Typed]]:
        merged = self._scope.merged
        found = []
        for name, value in merged.items():
            owned = (n for s in self._scope.sources for n, _ in s.columns if n.lower() == name)
            found.append((next(owned), value))
        for source in self._scope.sources:
            for name, kind in source.columns:
                if name.lower() not in merged:
                    found.append((name, Typed(f"{quoted(source.alias)}.{quoted(name)}", kind)))
        return found

    def _distinct(self, answers: Sequence[tuple[str, Typed]]) -> str:
        distinct = self._node.args.get("distinct")
        if not distinct:
            return ""
        if distinct.args.get("on") or any(value.type.kind == "map" for _, value in answers):
            refuse(self._node, "DISTINCT of this kind")
        return "DISTINCT "

    def _group(self, answers: Sequence[tuple[str, Typed]]) -> str:
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

    def _key(self, key: exp.Expr, answers: Sequence[tuple[str, Typed]]) -> str:
        if isinstance(key, exp.Tuple | exp.Paren):
            parts = key.expressions if isinstance(key, exp.Tuple) else [key.this]
            return f"({', '.join(self._key(part, answers) for part in parts)})"
        if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
            if isinstance(key, exp.GroupingSets) and self._node.args["group"].expressions[1:]:
                refuse(key, "GROUPING SETS beside other keys")
            word = "GROUPING SETS" if isinstance(key, exp.GroupingSets) else type(key).__name__
            return f"{word} ({', '.join(self._key(part, answers) for part in key.expressions)})"
        value = numbered(key, answers) or self._expressions.translate(key, self._scope)
        if value.type.kind == "map":
            refuse(key, "a group of maps")
        return value.text


def numbered(key: exp.Expr, answers: Sequence[tuple[str, Typed]]) -> Typed | None:
    """Give the column of the answer that a number in GROUP BY or ORDER BY means."""
    if not isinstance(key, exp.Literal) or key.is_string or not key.name.isdigit():
        return None
    if not 1 <= int(key.name) <= len(answers):
        raise UnknownColumnError(key.name, known=[name for name, _ in answers], at=place(key))
    return answers[int(key.name) - 1][1]


def cut(node: exp.Expr) -> str:
    """Translate LIMIT and OFFSET."""
    told = ""
    for key in ("limit", "offset"):
        if part := node.args.get(key):
            if not isinstance(part.expression, exp.Literal) or not part.expression.name.isdigit():
                refuse(node, key.upper())
            told += f" {key.upper()} {part.expression.name}"
    return told


def _is_aggregate(node: exp.Expr) -> bool:
    return any(
        isinstance(call, exp.Anonymous)
        and (known := FUNCTIONS.get(call.name.lower())) is not None
        and known.kind == "aggregate"
        for call in node.find_all(exp.Anonymous)
    )


def _renamed(columns: Columns, alias: exp.TableAlias | None) -> Columns:
    names = [column.name for column in alias.columns] if alias else []
    if not names:
        return columns
    if len(names) != len(columns):
        refuse(alias or exp.Null(), f"{len(names)} names for {len(columns)} columns")
    return tuple((name, kind) for name, (_, kind) in zip(names, columns, strict=True))


def _recast(answer: Answer, wanted: Sequence[tuple[str, Type]], node: exp.Expr) -> str:
    if [kind for _, kind in answer.columns] == [kind for _, kind in wanted]:
        return answer.text
    names = [f"c{i}" for i in range(len(wanted))]
    casts = []
    for name, (_, given), (own, kind) in zip(names, answer.columns, wanted, strict=True):
        text = cast(f"_u.{name}", given, kind) or refuse(node, f"{given} as {kind}")
        casts.append(f"{text} AS {quoted(own)}")
    return f"SELECT {', '.join(casts)} FROM ({answer.text}) AS _u({', '.join(names)})"
