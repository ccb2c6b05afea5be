"""SQL on stored tables without a JVM: Spark's dialect in, DuckDB underneath.

Only what is known to mean the same in both is translated; all else is refused, never answered
differently. What a name, a type or a function means is decided here, by Spark's rules (`queries`,
`expression`, `types`, `functions`); DuckDB gets plain SQL with every cast written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from millstream.sql.answer import Engine, read_rows
from millstream.sql.catalogue import catalogue_answer
from millstream.sql.duckdb_query import DuckDBEngine
from millstream.sql.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.lake.home import Home
    from millstream.sql.answer import Answer

T = TypeVar("T")


def query(
    home: Home, text: str, limits: Limits | None = None
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Answer a query in Spark's dialect with DuckDB; return the column names and the rows.

    It can read the tables of the home, and nothing else: no files, no network.
    """
    limits = limits or Limits()
    engine = DuckDBEngine(home, limits)
    return run(home, engine, text, lambda answer: (answer.columns, read_rows(answer, limits.rows)))


def run(home: Home, engine: Engine, text: str, take: Callable[[Answer], T]) -> T:
    """Answer a query, or a question about the tables themselves: SHOW TABLES, DESCRIBE name.

    Raises:
        SQL_SYNTAX: It cannot be read.
        SQL_NOT_READING: It is not one reading statement.
        UNKNOWN_TABLE: It names a table that is not there.
        SQL_OVER_LIMIT: It needs more than it may use.
    """
    known = catalogue_answer(home, text)
    return engine.run(text, take) if known is None else take(known)
