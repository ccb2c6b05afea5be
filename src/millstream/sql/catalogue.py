"""Which tables there are and what their columns are: SHOW TABLES, DESCRIBE name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.sql.answer import HeldAnswer

if TYPE_CHECKING:
    from millstream.lake.home import Home

_SHOW = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(
    r"\s*DESC(?:RIBE)?\s+(?:TABLE\s+)?(?:`(?P<quoted>[^`]+)`|(?P<plain>\w+))\s*;?\s*", re.IGNORECASE
)


def catalogue_answer(home: Home, text: str) -> HeldAnswer | None:
    """Answer SHOW TABLES and DESCRIBE name; None if the text is another statement.

    Raises:
        UNKNOWN_TABLE: It describes a table that is not there.
    """
    if _SHOW.fullmatch(text):
        return HeldAnswer(("table", "kind"), [(name, _kind(home, name)) for name in home.tables])
    if found := _DESCRIBE.fullmatch(text):
        return HeldAnswer(("column", "type"), _columns(home, found["quoted"] or found["plain"]))
    return None


def column_names(home: Home, name: str) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    return tuple(column for column, _ in _columns(home, name))


def _columns(home: Home, written: str) -> list[tuple[str, str]]:
    from millstream.sql.frontier import COLUMNS, FRONTIER
    from millstream.sql.live_table import columns_of

    if written.lower() == FRONTIER:
        found = COLUMNS
    else:
        name = {known.lower(): known for known in home.tables}.get(written.lower(), written)
        found = columns_of(home.existing(name))
    return [(column, str(kind)) for column, kind in found]


def _kind(home: Home, name: str) -> str:
    from millstream.lake.home import QUARANTINE

    if name.endswith(QUARANTINE):
        return "quarantine"
    return "source" if home.is_landing(name) else "table"
