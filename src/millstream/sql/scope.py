"""What names mean at one place of a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.sql.types import Type, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Columns = tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression in DuckDB's SQL, and of which of Spark's types it is."""

    text: str
    type: Type
    literal: object = None
    """Its value, if it is a literal."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something in FROM: what it is called and the columns it has."""

    alias: str
    columns: Columns

    def column(self, name: str) -> Iterator[Typed]:
        """Find its columns of a name."""
        for own, kind in self.columns:
            if own.lower() == name.lower():
                yield Typed(f"{quoted(self.alias)}.{quoted(own)}", kind)


@dataclass(slots=True)
class Scope:
    """The names that an expression may use."""

    sources: list[Source] = field(default_factory=list)
    outer: Scope | None = None
    merged: dict[str, Typed] = field(default_factory=dict)
    """Columns that USING made one of two."""
    aliases: dict[str, Typed] = field(default_factory=dict)
    """What SELECT has named so far; counts where no source has the name."""
    first: Mapping[str, Typed] = field(default_factory=dict)
    """What counts before all sources: parameters of a lambda, and the answer in ORDER BY."""

    def find(self, name: str, qualifier: str | None = None) -> list[Typed]:
        """Find what a name may mean here, in this query or in those around it."""
        key = name.lower()
        if qualifier is None and key in self.first:
            return [self.first[key]]
        if qualifier is None and key in self.merged:
            return [self.merged[key]]
        found = [
            column
            for source in self.sources
            if qualifier is None or source.alias.lower() == qualifier.lower()
            for column in source.column(name)
        ]
        if not found and qualifier is None and key in self.aliases:
            return [self.aliases[key]]
        return found or (self.outer.find(name, qualifier) if self.outer else [])

    def names(self) -> list[str]:
        """List all names, for who mistyped one."""
        own = [name for source in self.sources for name, _ in source.columns]
        return [*own, *self.aliases, *(self.outer.names() if self.outer else ())]

    def inside(self, first: Mapping[str, Typed]) -> Scope:
        """Give the same names with some that count first."""
        return Scope(self.sources, self.outer, self.merged, self.aliases, {**self.first, **first})
