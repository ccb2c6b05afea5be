"""SQL on stored tables without a JVM: Spark's dialect in, DuckDB underneath.

Only what is known to mean the same in both is translated; all else is refused, never answered
differently. What a name, a type or a function means is decided here, by Spark's rules (`query`,
`expression`, `types`, `function`); DuckDB is given plain SQL with every cast written out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
from sqlglot import exp

from millstream.errors import SqlFailedError, SqlNotTranslatedError, UnknownTableError
from millstream.lake.sql.cast import UNSURE
from millstream.lake.sql.function import MACROS
from millstream.lake.sql.live import LiveTable
from millstream.lake.sql.parse import parse
from millstream.lake.sql.query import Queries
from millstream.lake.sql.refusal import place, refuse
from millstream.lake.sql.types import quoted
from millstream.lake.travel import existing_version, version_as_of

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.lake.sql.scope import Columns


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
    tables = _Tables(home)
    statement = parse(text)
    answer = Queries(tables).translate(statement)
    for name, kind in answer.columns:
        if not kind.is_known:
            refuse(statement, f"column {name!r}, which is of type {kind}")
    with duckdb.connect() as connection:
        _confine(connection, tables)
        try:
            rows = connection.execute(answer.text).fetchall()
        except duckdb.Error as error:
            raise _explained(error) from error
    return tuple(name for name, _ in answer.columns), rows


@dataclass(slots=True)
class _Tables:
    """The tables of a home, each opened once for each version that is asked for."""

    home: Home
    opened: dict[tuple[str, int | None], tuple[str, LiveTable]] = field(default_factory=dict)

    def read(self, table: exp.Table) -> tuple[str, Columns]:
        name = {known.lower(): known for known in self.home.tables}.get(table.name.lower())
        if name is None or table.args.get("db"):
            written = ".".join(part.name for part in table.parts)
            raise UnknownTableError(written, known=self.home.tables, at=place(table))
        key = (name, self._version(name, table))
        if key not in self.opened:
            live = LiveTable.open(name, self.home.existing(name), key[1])
            self.opened[key] = (f"_t{len(self.opened)}", live)
        view, live = self.opened[key]
        return quoted(view), live.columns

    def _version(self, name: str, table: exp.Table) -> int | None:
        version = table.args.get("version")
        if version is None:
            return None
        said = version.expression
        if not isinstance(said, exp.Literal) or version.args.get("kind") != "AS OF":
            refuse(table)
        path = self.home.existing(name)
        if version.name == "TIMESTAMP":
            return version_as_of(path, name, said.name)
        return existing_version(
            path, name, int(said.name) if said.name.isdigit() else refuse(table)
        )


def _confine(connection: duckdb.DuckDBPyConnection, tables: _Tables) -> None:
    """Let a connection read the live files of these tables, and nothing else for good."""
    connection.execute("SET TimeZone = 'UTC'")
    for macro in MACROS:
        connection.execute(f"CREATE TEMP MACRO {macro}")
    files = [file for _, live in tables.opened.values() for file in live.files]
    connection.execute("SET allowed_paths = ?", [files])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    for view, live in tables.opened.values():
        connection.execute(f"CREATE TEMP VIEW {view} AS {live.text}")


def _explained(error: duckdb.Error) -> SqlFailedError | SqlNotTranslatedError:
    cause = str(error).partition(": ")[2].splitlines()[0]
    if cause.startswith(UNSURE):
        return SqlNotTranslatedError(cause.removeprefix(UNSURE))
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        return SqlNotTranslatedError(cause)
    return SqlFailedError(cause=cause)
