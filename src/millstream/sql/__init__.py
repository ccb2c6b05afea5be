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
        SqlSyntaxError: It cannot be read.
        SqlNotReadingError: It is not one reading statement.
        SqlNotTranslatedError: Only Spark can answer it.
        UnknownTableError: It names a table that is not there.
        UnknownColumnError: It names a column that is not there.
        SqlFailedError: It stops at a value.
    """
    # Imported while another process translates, if one was begun.
    from millstream.sql.ask import ask

    return ask(lambda: ahead.translate(home, text))
