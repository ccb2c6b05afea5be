"""SQL on stored tables without a JVM: Spark's dialect in, DuckDB underneath.

Only what is known to mean the same in both is translated; all else is refused, never answered
differently. What a name, a type or a function means is decided here, by Spark's rules (`queries`,
`expression`, `types`, `function`); DuckDB is given plain SQL with every cast written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql import ahead

if TYPE_CHECKING:
    from millstream.lake.home import Home


def query(home: Home, text: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Answer a query in Spark's dialect; give the column names and the rows.

    It can read the tables of the home, and nothing else: no files, no network.

    Raises:
        SQL_SYNTAX: It cannot be read.
        SQL_NOT_READING: It is not one reading statement.
        SQL_NOT_TRANSLATED: Only Spark can answer it.
        UNKNOWN_TABLE: It names a table that is not there.
        UNKNOWN_COLUMN: It names a column that is not there.
        SQL_FAILED: It stops at a value.
    """
    # Imported while another process translates, if one was begun.
    from millstream.sql.ask import ask

    return ask(lambda: ahead.translate(home, text))
