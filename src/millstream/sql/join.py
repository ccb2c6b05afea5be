"""Joins: which rows match, and what `*`, `table.*` and a bare name mean afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.errors import closest, fault, listed
from millstream.sql.refusal import location_of, refuse
from millstream.sql.scope import Relation, SqlColumn, SqlScope, TypedSql

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.sql.expression import Expressions

_KINDS = ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
_HALF = ("SEMI", "ANTI")

Pair = tuple[SqlColumn, SqlColumn]


def join_relations(
    left: Relation,
    right: Relation,
    join: exp.Join,
    expressions: Expressions,
    outer: SqlScope | None,
) -> Relation:
    """Join two relations.

    Raises:
        SQL_NOT_TRANSLATED: Only Spark can answer it.
        UNKNOWN_COLUMN: USING, or ON, names a column that is not there.
    """
    method, side, kind = _words(join)
    if method not in ("", "NATURAL") or kind not in _KINDS:
        refuse(join)
    if method and kind in ("CROSS", *_HALF):
        refuse(join)
    keys = _keys(left, right, join)
    columns, hidden = (*left.columns, *right.columns), (*left.hidden, *right.hidden)
    if on := join.args.get("on"):
        condition = expressions.condition(on, SqlScope(columns, hidden, outer))
    else:
        condition = " AND ".join(_equal(pair, join, expressions) for pair in keys) or "TRUE"
    if kind in _HALF:
        columns, hidden = left.columns, left.hidden
    if keys:
        columns, hidden = _merged(keys, columns, hidden, join, expressions)
    text = f"{left.text} {kind if kind in _HALF else side} JOIN {right.text} ON {condition}"
    return Relation(text, columns, hidden)


def _words(join: exp.Join) -> tuple[str, ...]:
    return tuple(str(join.args.get(key) or "").upper() for key in ("method", "side", "kind"))


def _keys(left: Relation, right: Relation, join: exp.Join) -> list[Pair]:
    """Pair the columns that USING or NATURAL means: Spark takes the first of a name."""
    named = join.args.get("using") or ()
    if _words(join)[0]:
        named = _shared(left, right, join)
    return [(_first(name, left), _first(name, right)) for name in named]


def _shared(left: Relation, right: Relation, join: exp.Join) -> list[exp.Identifier]:
    """List the names that both sides have, in the order of the left one."""
    names = [column.name.lower() for column in left.columns]
    others = [column.name.lower() for column in right.columns]
    shared = [name for name in dict.fromkeys(names) if name in others]
    for name in shared:
        if names.count(name) > 1 and others.count(name) > 1:
            refuse(join, f"NATURAL JOIN of tables that both have several columns {name!r}")
    return [exp.to_identifier(name, quoted=True) for name in shared]


def _first(name: exp.Expr, relation: Relation) -> SqlColumn:
    for column in relation.columns:
        if column.is_named(name.name):
            return column
    known = [column.name for column in relation.columns]
    raise fault(
        "UNKNOWN_COLUMN",
        at=location_of(name),
        name=name.name,
        nearest=closest(name.name, known),
        known=listed(set(known)),
    )


def _equal(pair: Pair, join: exp.Join, expressions: Expressions) -> str:
    one, other = expressions.comparable([column.value for column in pair], join)
    return f"{one} = {other}"


def _merged(
    keys: Sequence[Pair],
    columns: Iterable[SqlColumn],
    hidden: tuple[SqlColumn, ...],
    join: exp.Join,
    expressions: Expressions,
) -> tuple[tuple[SqlColumn, ...], tuple[SqlColumn, ...]]:
    """Return the columns after USING: keys first, one of each pair, then left and right."""
    _, side, kind = _words(join)
    lefts, rights = (tuple(pair[at] for pair in keys) for at in (0, 1))
    others = tuple(column for column in columns if column not in (*lefts, *rights))
    if kind in _HALF:
        return (*lefts, *others), hidden
    if side == "RIGHT":
        return (*rights, *others), (*lefts, *hidden)
    if side != "FULL":
        return (*lefts, *others), (*rights, *hidden)
    both = tuple(_either(pair, join, expressions) for pair in keys)
    return (*both, *others), (*lefts, *rights, *hidden)


def _either(pair: Pair, join: exp.Join, expressions: Expressions) -> SqlColumn:
    texts, kind = expressions.alike([column.value for column in pair], join)
    return SqlColumn(pair[0].name, TypedSql(f"coalesce({', '.join(texts)})", kind), None)
