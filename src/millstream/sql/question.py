"""What DuckDB is asked, whoever has made it of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query in DuckDB's SQL, and what must be there for it."""

    text: str
    columns: Sequence[str]
    macros: Sequence[str]
    views: Mapping[str, str]
    """How the tables it names are read."""
    files: Sequence[str]
    """All that may be read."""
