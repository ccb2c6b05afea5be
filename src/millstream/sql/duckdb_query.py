"""A translated query, and running it in DuckDB, which reads the files of its tables and no others.

DuckDB is imported when a query runs: what only names tables does without it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.errors import MillstreamError, fault
from millstream.sql import sketch
from millstream.sql.limits import Limits, over_limit, over_memory, run_interruptibly, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import duckdb
    import pyarrow as pa

    from millstream.lake.home import Home
    from millstream.sql.answer import Answer

T = TypeVar("T")

_BATCH = 10_000
"""Rows that are read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckDBQuery:
    """A query in DuckDB's SQL, and what it needs."""

    text: str
    columns: Sequence[str]
    macros: Sequence[str]
    views: Mapping[str, str]
    """How the tables it names are read."""
    sketches: Sequence[str]
    """The functions of sketches that it calls."""
    files: Sequence[str]
    """All files that it may read."""
    deleted: Mapping[str, bytes] = field(default_factory=dict)
    """The bits that say which rows of files are deleted, by the names of variables."""


@dataclass(frozen=True, slots=True)
class DuckDBAnswer:
    """The answer to a query, which DuckDB computes while it is read."""

    columns: tuple[str, ...]
    text: str
    connection: duckdb.DuckDBPyConnection

    def batches(self, most: int | None = None) -> Iterator[list[tuple[Any, ...]]]:  # noqa: ARG002
        """Read the rows, some at a time: DuckDB computes them as they are read."""
        result = self.connection.execute(self.text)
        while rows := result.fetchmany(_BATCH):
            yield rows

    def record_batches(self) -> pa.RecordBatchReader:
        """Read the rows as Arrow."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self.connection.sql(self.text))


@dataclass(frozen=True, slots=True)
class DuckDBEngine:
    """Answers queries over the tables of a home with DuckDB."""

    home: Home
    limits: Limits

    def run(self, text: str, take: Callable[[Answer], T]) -> T:
        """Run a query; return what `take` makes of its answer.

        Raises:
            SQL_SYNTAX: It cannot be read.
            SQL_NOT_READING: It is not one reading statement.
            SQL_NOT_TRANSLATED: Only Spark can answer it.
            UNKNOWN_TABLE: It names a table that is not there.
            UNKNOWN_COLUMN: It names a column that is not there.
            SQL_FAILED: It stops at a value.
            SQL_OVER_LIMIT: It needs more time, memory or disk than it may use.
        """
        import duckdb

        from millstream.sql.translation import translate

        connection = duckdb.connect()

        def answer() -> T:
            with TemporaryDirectory(prefix="millstream-query-") as folder, connection:
                query = translate(self.home, text)
                _limit(connection, self.limits, folder)
                _confine(connection, query)
                try:
                    return take(DuckDBAnswer(tuple(query.columns), query.text, connection))
                except (duckdb.Error, MemoryError) as error:
                    raise _explained(error, self.limits) from error

        def cancel() -> None:
            # A query that has ended meanwhile has closed its connection.
            with suppress(duckdb.ConnectionException):
                connection.interrupt()

        return run_interruptibly(answer, cancel=cancel, limits=self.limits)


def _limit(connection: duckdb.DuckDBPyConnection, limits: Limits, folder: str) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = '{limits.memory_mb}MiB'")
    connection.execute("SET temp_directory = ?", [folder])
    connection.execute(f"SET max_temp_directory_size = '{limits.disk_mb}MiB'")


def _confine(connection: duckdb.DuckDBPyConnection, query: DuckDBQuery) -> None:
    """Let a connection read the live files of these tables, and nothing else for good."""
    sketch.create(connection, query.sketches)
    for macro in query.macros:
        connection.execute(f"CREATE TEMP MACRO {macro}")
    for name, bits in query.deleted.items():
        connection.execute(f"SET VARIABLE {name} = ?::BLOB::BIT", [bits])
    connection.execute("SET allowed_paths = ?", [list(query.files)])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    for view, text in query.views.items():
        connection.execute(f"CREATE TEMP VIEW {view} AS {text}")


def _explained(error: duckdb.Error | MemoryError, limits: Limits) -> MillstreamError:
    import duckdb

    from millstream.sql.cast import UNSURE

    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        if "max_temp_directory_size" in str(error):
            return over_limit(f"{size_text(limits.disk_mb)} of temporary disk", "--temp-disk")
        return over_memory(limits.memory_mb)
    cause = str(error).partition(": ")[2].splitlines()[0]
    if cause.startswith(UNSURE):
        return fault("SQL_NOT_TRANSLATED", construct=cause.removeprefix(UNSURE))
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException):
        return fault("SQL_NOT_TRANSLATED", construct=cause)
    return fault("SQL_FAILED", cause=cause)
