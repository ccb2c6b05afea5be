"""SQL on stored tables without a JVM: Spark's dialect in, DuckDB underneath."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import sqlglot
from deltalake import DeltaTable
from sqlglot import exp
from sqlglot.errors import SqlglotError

from millstream.errors import SqlFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.lake.home import Home


def query(home: Home, text: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Answer a query in Spark's dialect; give the column names and the rows.

    It can read the tables of the home, and nothing else: no files, no network.

    Raises:
        UnknownTableError: It names a table that is not there.
        SqlFailedError: It is not one query, or does not run.
    """
    parsed = _parse(home, text)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in _tables(parsed):
            rows = DeltaTable(str(home.existing(name))).to_pyarrow_dataset()
            connection.register(name, rows)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            answer = connection.execute(parsed.sql(dialect="duckdb"))
        except duckdb.Error as error:
            cause = str(error).splitlines()[0]
            raise SqlFailedError(cause=cause, known=home.tables) from error
        return tuple(column[0] for column in answer.description), answer.fetchall()


def _parse(home: Home, text: str) -> exp.Query:
    try:
        statements = sqlglot.parse(text, dialect="spark")
    except SqlglotError as error:
        raise SqlFailedError(cause=str(error).splitlines()[0], known=home.tables) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise SqlFailedError(cause="it is not one SELECT", known=home.tables)
    return statements[0]


def _tables(parsed: exp.Query) -> Iterator[str]:
    defined = {cte.alias for cte in parsed.find_all(exp.CTE)}
    seen = set(defined)
    for table in parsed.find_all(exp.Table):
        if table.name and table.name not in seen:
            seen.add(table.name)
            yield table.name
