"""DuckDB, asked: it reads the files of the question, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from millstream.errors import MillstreamError, fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.sql.question import Question


def ask(question: Callable[[], Question]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Give the names of the columns and the rows of the answer.

    The question is asked for when all that does not depend on it is ready.

    Raises:
        SQL_NOT_TRANSLATED: DuckDB does not understand what was made of the query.
        SQL_FAILED: It stops at a value.
    """
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        asked = question()
        _confine(connection, asked)
        try:
            return tuple(asked.columns), connection.execute(asked.text).fetchall()
        except duckdb.Error as error:
            raise _explained(error) from error


def _confine(connection: duckdb.DuckDBPyConnection, question: Question) -> None:
    """Let a connection read the live files of these tables, and nothing else for good."""
    for macro in question.macros:
        connection.execute(f"CREATE TEMP MACRO {macro}")
    connection.execute("SET allowed_paths = ?", [list(question.files)])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    for view, text in question.views.items():
        connection.execute(f"CREATE TEMP VIEW {view} AS {text}")


def _explained(error: duckdb.Error) -> MillstreamError:
    from millstream.sql.cast import UNSURE

    cause = str(error).partition(": ")[2].splitlines()[0]
    if cause.startswith(UNSURE):
        return fault("SQL_NOT_TRANSLATED", construct=cause.removeprefix(UNSURE))
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        return fault("SQL_NOT_TRANSLATED", construct=cause)
    return fault("SQL_FAILED", cause=cause)
