"""The table `_frontier`: up to when each stored dataset is complete, as its last commit says.

It is in no folder: no dataset can have its name, which begins with `_`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.lake.frontier import moment
from millstream.lake.home import QUARANTINE
from millstream.lake.log import facts_of, versions
from millstream.sql.live_table import LiveTable
from millstream.sql.types import Type, quoted, string_literal

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.sql.scope import Columns

FRONTIER = "_frontier"
COLUMNS: Columns = (
    ("name", Type("string")),
    ("kind", Type("string")),
    ("complete_to", Type("timestamp")),
    ("event_time", Type("string")),
    ("version", Type("bigint")),
    ("batch", Type("bigint")),
    ("quiet_since", Type("timestamp")),
)


def frontier_rows(home: Home) -> list[tuple[Any, ...]]:
    """Return what is known of each source and table, by name."""
    rows = []
    for name in home.tables:
        if not name.endswith(QUARANTINE):
            facts, kind = facts_of(home.table(name)), "source" if home.is_landing(name) else "table"
            complete_to, quiet_since = moment(facts.frontier), moment(facts.quiet_since)
            version = versions(home.table(name)).stop - 1
            rows.append(
                (name, kind, complete_to, facts.event_time, version, facts.batch, quiet_since)
            )
    return rows


def frontier_table(home: Home) -> LiveTable:
    """Return the table for DuckDB, as plain values."""
    nulls = ", ".join(f"CAST(NULL AS {kind.duck}) AS {quoted(name)}" for name, kind in COLUMNS)
    parts = [f"SELECT {nulls} WHERE FALSE"]
    for row in frontier_rows(home):
        cells = zip(row, COLUMNS, strict=True)
        parts.append("SELECT " + ", ".join(_cell(value, kind) for value, (_, kind) in cells))
    return LiveTable(COLUMNS, (), f"({' UNION ALL '.join(parts)})")


def _cell(value: object, kind: Type) -> str:
    return f"CAST({'NULL' if value is None else string_literal(str(value))} AS {kind.duck})"
