"""Statements that SQLite and Postgres have in common."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

from millstream.lake.fence import Fence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.serve.shape import Shape

FENCE = "millstream_fence"
"""The table of fences, beside the tables they are of."""

_FENCED = tuple(field.name for field in fields(Fence))


def quoted(name: str) -> str:
    """Quote a name.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def qualified(table: str) -> str:
    """Quote the name of a table and of its schema, if it has one.

    >>> qualified("shop.visits")
    '"shop"."visits"'
    """
    return ".".join(map(quoted, table.split(".", 1)))


def beside(table: str, other: str) -> str:
    """Name another table of the same schema.

    >>> beside("shop.visits", "fence"), beside("visits", "fence")
    ('"shop".fence', 'fence')
    """
    schema, dot, _ = table.partition(".")
    return f"{quoted(schema)}.{other}" if dot else other


def listed(names: Iterable[str]) -> str:
    """Quote names, for a list of columns."""
    return ", ".join(map(quoted, names))


def create_table(table: str, types: dict[str, str], key: Sequence[str]) -> str:
    """Make a table with these columns; those of the key are never null."""
    columns = [
        f"{quoted(name)} {kind}{' NOT NULL' if name in key else ''}" for name, kind in types.items()
    ]
    if key:
        columns.append(f"PRIMARY KEY ({listed(key)})")
    return f"CREATE TABLE {table} ({', '.join(columns)})"


def on_conflict(shape: Shape, table: str, collation: str = "") -> str:
    """Return the clause for a row whose key is there already.

    Args:
        shape: What is kept.
        table: The name of the table in the statement.
        collation: How the column that says which row is newer is compared, if not by its type.
    """
    if not shape.key or shape.mode == "complete":
        return ""
    clause = f" ON CONFLICT ({listed(shape.key)}) DO "
    if not shape.values:
        return clause + "NOTHING"
    changes = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in shape.values)
    clause += f"UPDATE SET {changes}"
    if shape.newest_by:
        newest = quoted(shape.newest_by)
        new = f"excluded.{newest}{collation}"
        clause += f" WHERE {table}.{newest} IS NULL OR {new} >= {table}.{newest}"
    return clause


@dataclass(frozen=True, slots=True)
class FenceTable:
    """The statements about the fence of one table."""

    name: str
    """Quoted, and with its schema if it has one."""
    mark: str
    """How a value to fill in is written: `?` or `%s`."""

    @property
    def create(self) -> str:
        """Make the table of fences, unless it is there."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self.name} (target TEXT PRIMARY KEY, "
            "writer TEXT NOT NULL, epoch BIGINT NOT NULL, owner TEXT NOT NULL, "
            "checkpoint TEXT NOT NULL, batch BIGINT NOT NULL, digest TEXT NOT NULL, "
            "note TEXT NOT NULL, columns TEXT NOT NULL)"
        )

    @property
    def select(self) -> str:
        """Look at a fence."""
        return f"SELECT {', '.join(_FENCED)} FROM {self.name} WHERE target = {self.mark}"

    @property
    def columns(self) -> str:
        """Look at the columns that the writer knows."""
        return f"SELECT columns FROM {self.name} WHERE target = {self.mark}"

    @property
    def put(self) -> str:
        """Write a whole fence."""
        names = ("target", *_FENCED, "columns")
        changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        marks = ", ".join([self.mark] * len(names))
        return (
            f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({marks}) "
            f"ON CONFLICT (target) DO UPDATE SET {changes}"
        )

    @property
    def advance(self) -> str:
        """Record a batch."""
        return (
            f"UPDATE {self.name} SET checkpoint = {self.mark}, batch = {self.mark}, "
            f"digest = {self.mark}, note = {self.mark} WHERE target = {self.mark}"
        )


def fence_from(row: Sequence[Any] | None) -> Fence | None:
    """Read a fence as it is selected."""
    return None if row is None else Fence(*row)


def fence_values(target: str, fence: Fence, columns: str) -> tuple[Any, ...]:
    """Return the parameters of `put`."""
    return (target, *astuple(fence), columns)


def advance_values(target: str, fence: Fence) -> tuple[Any, ...]:
    """Return the parameters of `advance`."""
    return (fence.checkpoint, fence.batch, fence.digest, fence.note, target)
