"""The names that are visible at one place of a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.sql.types import Type, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class TypedSql:
    """An expression in DuckDB's SQL, and of which of Spark's types it is."""

    text: str
    type: Type
    literal: object = None
    """Its value, if it is a literal."""


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column of FROM."""

    name: str
    value: TypedSql
    qualifier: str | None
    """The name of its table; None of a column that FULL JOIN … USING makes of two."""

    def is_named(self, name: str, qualifier: str | None = None) -> bool:
        """Whether a name in the query means it."""
        if qualifier is not None and qualifier.lower() != (self.qualifier or "").lower():
            return False
        return name.lower() == self.name.lower()


@dataclass(frozen=True, slots=True)
class Relation:
    """What FROM reads, in DuckDB's SQL, and its columns in the order of `*`."""

    text: str
    columns: tuple[SqlColumn, ...]
    hidden: tuple[SqlColumn, ...] = ()
    """The keys that USING leaves out of `*`: `table.column` and `table.*` give them."""

    @staticmethod
    def of(text: str, alias: str, columns: Columns) -> Relation:
        """Name an item of FROM."""
        names = [quoted(name) for name in distinct_names(name for name, _ in columns)]
        own = tuple(
            SqlColumn(name, TypedSql(f"{quoted(alias)}.{known}", kind), alias)
            for known, (name, kind) in zip(names, columns, strict=True)
        )
        return Relation(f"{text} AS {quoted(alias)}({', '.join(names)})", own)


@dataclass(frozen=True, slots=True)
class SqlScope:
    """The names that an expression may use."""

    columns: tuple[SqlColumn, ...] = ()
    hidden: tuple[SqlColumn, ...] = ()
    outer: SqlScope | None = None
    aliases: dict[str, TypedSql] = field(default_factory=dict)
    """What SELECT has named so far; counts where no source has the name."""
    first: tuple[SqlColumn, ...] = ()
    """What counts before all sources: parameters of a lambda, and the answer in ORDER BY."""

    def find(self, name: str, qualifier: str | None = None) -> list[TypedSql]:
        """Find what a name may mean here, in this query or in those around it."""
        if qualifier is None and (found := _named(self.first, name)):
            return found
        reachable = self.columns if qualifier is None else (*self.hidden, *self.columns)
        found = _named(reachable, name, qualifier)
        if not found and qualifier is None and name.lower() in self.aliases:
            return [self.aliases[name.lower()]]
        return found or (self.outer.find(name, qualifier) if self.outer else [])

    def of_table(self, qualifier: str) -> list[SqlColumn]:
        """Find the columns of `qualifier.*`: those that only a qualifier reaches come first."""
        every = (*self.hidden, *self.columns)
        return [c for c in every if c.qualifier and c.qualifier.lower() == qualifier.lower()]

    def names(self) -> list[str]:
        """List all names, to suggest one for a typo."""
        own = [column.name for column in self.columns]
        return [*own, *self.aliases, *(self.outer.names() if self.outer else ())]

    def inside(self, first: Iterable[tuple[str, TypedSql]]) -> SqlScope:
        """Return the same scope with names that are found first."""
        own = tuple(SqlColumn(name, value, None) for name, value in first)
        shadowed = {column.name.lower() for column in own}
        kept = (column for column in self.first if column.name.lower() not in shadowed)
        return SqlScope(self.columns, self.hidden, self.outer, self.aliases, (*own, *kept))


def distinct_names(names: Iterable[str]) -> list[str]:
    """Number the names that DuckDB would take for one, whatever their case.

    >>> distinct_names(["k", "v", "K", "k_1"])
    ['k', 'v', 'K_1', 'k_1_1']
    """
    taken: set[str] = set()
    distinct = []
    for name in names:
        candidate, number = name, 0
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        distinct.append(candidate)
    return distinct


def _named(columns: Iterable[SqlColumn], name: str, qualifier: str | None = None) -> list[TypedSql]:
    found = {c.value.text: c.value for c in columns if c.is_named(name, qualifier)}
    return list(found.values())
