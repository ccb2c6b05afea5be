"""The queries that read stored rows for a page: of a version, of a difference, set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.lake.home import QUARANTINE

if TYPE_CHECKING:
    from millstream.lake.home import Home


def rows_query(home: Home, name: str, version: int | None = None) -> str:
    """Return the query that reads a table, now or at a version.

    Raises:
        UNKNOWN_TABLE: There is no such table.
    """
    return f"SELECT * FROM {_at_version(home, name, version)}"


def difference_query(home: Home, name: str, earlier: int, later: int) -> str:
    """Return the query that compares two versions: rows that only one of them has.

    Raises:
        UNKNOWN_TABLE: There is no such table.
    """
    before, after = (f"SELECT * FROM {_at_version(home, name, v)}" for v in (earlier, later))
    return (
        f"SELECT 'added' AS `_change`, * FROM ({after} EXCEPT ALL {before}) "
        f"UNION ALL SELECT 'removed' AS `_change`, * FROM ({before} EXCEPT ALL {after})"
    )


def set_aside_query(home: Home, name: str, reason: str | None = None) -> str:
    """Return the query that reads rows that were set aside, the last ones first.

    Of a source they are the rows that are not `ok`, with the bytes that came; of a table they are
    those in its quarantine, with the rules they broke.

    Args:
        home: Where the app is deployed.
        name: A landed source or a table.
        reason: A verdict of a source, or a rule of a table.

    Raises:
        UNKNOWN_TABLE: Nothing was ever set aside of it.
    """
    wanted = "'" + reason.replace("\\", "\\\\").replace("'", "\\'") + "'" if reason else ""
    if home.is_landing(name):
        which = f"`_verdict` = {wanted}" if reason else "`_verdict` <> 'ok'"
        last = "ORDER BY `_batch` DESC, `_position` DESC"
        return f"SELECT * FROM {_at_version(home, name)} WHERE {which} {last}"
    which = f" WHERE array_contains(`_rules`, {wanted})" if reason else ""
    return f"SELECT * FROM {_at_version(home, name + QUARANTINE)}{which}"


def _at_version(home: Home, name: str, version: int | None = None) -> str:
    home.existing(name)
    quoted = "`" + name.replace("`", "``") + "`"
    return quoted if version is None else f"{quoted} VERSION AS OF {version:d}"
