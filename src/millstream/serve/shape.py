"""The shape of an answer in a store: its columns, its key and how its rows change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.errors import Location

NESTED = "json"
"""The word for structs, arrays, maps and whatever else only JSON can hold."""

GONE = "_gone"
"""The column that says that a row is to be deleted."""

_PLAIN = ("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary",
          "date", "timestamp", "timestamp_ntz")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """One column, with Spark's word for its type."""

    name: str
    type: str

    @property
    def is_decimal(self) -> bool:
        """Whether it is a decimal number of fixed precision."""
        return self.type.startswith("decimal")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a place in a store must look like."""

    dataset: str
    mode: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    at: Location
    evolve: bool = False
    newest_by: str | None = None
    schema: str = ""
    """All of it, as Spark's JSON, for stores that know Spark's types."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the columns that are not of the key."""
        return tuple(name for name in self.names if name not in self.key)


def columns_of(schema: str) -> tuple[Column, ...]:
    """Take the columns of a schema in Spark's JSON.

    >>> columns_of('{"fields": [{"name": "n", "type": "long"}]}')
    (Column(name='n', type='long'),)
    """
    return tuple(Column(f["name"], _word(f["type"])) for f in json.loads(schema)["fields"])


def columns_to_json(columns: Sequence[Column]) -> str:
    """Encode columns as JSON, for readers of the store."""
    return json.dumps([[column.name, column.type] for column in columns])


def columns_from_json(text: str) -> tuple[Column, ...]:
    """Decode columns from JSON."""
    return tuple(Column(name, kind) for name, kind in json.loads(text))


def _word(kind: Any) -> str:
    if isinstance(kind, str) and (kind in _PLAIN or kind.startswith("decimal")):
        return kind
    if isinstance(kind, str) and kind.startswith(("char", "varchar")):
        return "string"
    return NESTED
