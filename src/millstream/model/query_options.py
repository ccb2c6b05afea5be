"""Options that every dataset with a query may have, whatever it is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a query runs, what is expected of it, and how long its rows are kept.

    None: not declared.
    """

    trigger: str | None = None
    batch: str | None = None
    """How much a batch reads: what takes so long, or so many rows."""
    freshness: str | None = None
    """How long ago its last batch may be."""
    behind: str | None = None
    """How many rows it may have left to read."""
    failed_rows: str | None = None
    """Which share of its rows may break a rule or be malformed."""
    keep: str | None = None
    """How long landed rows, or those of an outbox, are kept after they arrived; else for ever."""
    keep_quarantined: str | None = None
    """How long the rows of its quarantine are kept; else for ever."""
    keep_versions: str | None = None
    """How long earlier versions of the table can be read."""

    @staticmethod
    def among(options: Mapping[str, Any]) -> QueryOptions:
        """Choose these options among all that a user gives."""
        return QueryOptions(**{name: options[name] for name in NAMES if name in options})


UNDECLARED = QueryOptions()
NAMES = tuple(field.name for field in fields(QueryOptions))
