"""SQLite tables as stores: a batch and its fence are one transaction of one file."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.lake.fence import Decision
from millstream.serve.fence import admit_batch, take_fence
from millstream.serve.shape import columns_from_json, columns_to_json
from millstream.serve.store import WriteResult, salvage, split_deleted, split_keyless
from millstream.serve.value import RowsRefusedError, as_scalars, row_from_store, scalar_of
from millstream.systems import relational as sql
from millstream.systems.existing_table import StoredColumn, WantedColumn, check_key, columns_to_add

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from millstream.lake.fence import Fence, PendingBatch
    from millstream.serve.fence import Driver, Place
    from millstream.serve.shape import Column, Shape
    from millstream.serve.store import Refused, Rows, Settle
    from millstream.systems.sqlite.settings import SQLite

_WAIT_S = 30.0
"""How long a writer waits for another process to let go of the file."""

_TYPES = {
    "boolean": "INTEGER",
    "byte": "INTEGER",
    "short": "INTEGER",
    "integer": "INTEGER",
    "long": "INTEGER",
    "float": "REAL",
    "double": "REAL",
    "binary": "BLOB",
}
"""All else is text: times in UTC, decimals, JSON."""

_AFFINITIES = (("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"),
               ("BLOB", "BLOB"), ("REAL", "REAL"), ("FLOA", "REAL"), ("DOUB", "REAL"))  # fmt: skip
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)

_BY_VALUE = "millstream_decimal"
_TRANSIENT = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
)
"""Transient errors: the file is locked, the disk is full or was away."""


class SQLiteStore:
    """A table open for writing."""

    def __init__(self, sink: SQLite, shape: Shape, driver: Driver) -> None:
        self.place = sink.place(shape.dataset)
        self._shape, self._driver, self._target = shape, driver, sink.target(shape.dataset)
        self._name = sql.quoted(self._target)
        self._fences = sql.FenceTable(sql.FENCE, "?")
        with _translating_errors(self.place):
            Path(sink.path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                sink.path, _WAIT_S, isolation_level=None, check_same_thread=False
            )
            self._db.create_collation(_BY_VALUE, _compared)
            try:
                # Below FULL, the last commits before a power cut may be lost.
                self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def take(self) -> Fence:
        """Write this driver's epoch beside the table."""
        with _translating_errors(self.place), self._transaction():
            fence = take_fence(self.fence(), self._driver, self.place)
            columns = columns_to_json(self._shape.columns)
            self._db.execute(self._fences.put, sql.fence_values(self._target, fence, columns))
        return fence

    def fence(self) -> Fence | None:
        """Look at the fence."""
        with _translating_errors(self.place):
            found = self._db.execute(self._fences.select, (self._target,)).fetchone()
        return sql.fence_from(found)

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Write a batch and its fence in one transaction."""
        with _translating_errors(self.place), self._transaction():
            held, decision = admit_batch(self.fence(), self._driver, pending, self.place)
            if decision is not Decision.APPLY:
                return WriteResult(decision, held)
            if self._shape.mode == "complete":
                self._db.execute(f"DELETE FROM {self._name}")
            refused: list[Refused] = []
            for part in rows():
                kept, lacking = split_keyless(part, self._shape.key)
                refused += lacking + salvage(kept, self._apply)
            fence = held.with_batch(pending, settle(refused))
            self._db.execute(self._fences.advance, sql.advance_values(self._target, fence))
        return WriteResult(decision, fence, tuple(refused))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _apply(self, rows: pa.Table) -> None:
        kept, gone = split_deleted(rows)
        values = as_scalars(kept, self._shape.columns)
        keys = as_scalars(gone, self._key_columns) if gone is not None else []
        self._db.execute("SAVEPOINT part")
        try:
            self._db.executemany(self._insert, values)
            if keys:
                self._db.executemany(self._delete, keys)
        except _REFUSALS as error:
            self._db.execute("ROLLBACK TO part")
            self._db.execute("RELEASE part")
            raise RowsRefusedError(str(error)) from error
        self._db.execute("RELEASE part")

    @property
    def _key_columns(self) -> tuple[Column, ...]:
        return tuple(c for name in self._shape.key for c in self._shape.columns if c.name == name)

    @property
    def _insert(self) -> str:
        marks = ", ".join("?" * len(self._shape.columns))
        return (
            f"INSERT INTO {self._name} ({sql.listed(self._shape.names)}) VALUES ({marks})"
            f"{sql.on_conflict(self._shape, self._name, self._collation)}"
        )

    @property
    def _collation(self) -> str:
        """How decimals, which are texts here, are compared."""
        newest = [c for c in self._shape.columns if c.name == self._shape.newest_by]
        return f" COLLATE {_BY_VALUE}" if newest and newest[0].is_decimal else ""

    @property
    def _delete(self) -> str:
        same = " AND ".join(f"{sql.quoted(name)} = ?" for name in self._shape.key)
        return f"DELETE FROM {self._name} WHERE {same}"

    def _prepare(self) -> None:
        with self._transaction():
            self._db.execute(self._fences.create)
            held = self._db.execute(f"PRAGMA table_info({self._name})").fetchall()
            wanted = {c.name: _wanted(c) for c in self._shape.columns}
            if not held:
                types = {name: column.type for name, column in wanted.items()}
                self._db.execute(sql.create_table(self._name, types, self._shape.key))
                return
            columns = {name: _held(kind, *rest) for _, name, kind, *rest in held}
            for name in columns_to_add(columns, wanted, self._shape, self.place):
                column = f"{sql.quoted(name)} {wanted[name].type}"
                self._db.execute(f"ALTER TABLE {self._name} ADD COLUMN {column}")
            self._check_key(held)

    def _check_key(self, held: Sequence[Any]) -> None:
        if not self._shape.key or self._shape.mode == "complete":
            return
        indexes = [{row[1] for row in held if row[5]}]
        for index in self._db.execute(f"PRAGMA index_list({self._name})").fetchall():
            if index[2] and not index[4]:
                found = self._db.execute(f"PRAGMA index_info({sql.quoted(index[1])})")
                indexes.append({row[2] for row in found.fetchall()})
        check_key(indexes, self._shape, self.place, self._name)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # Some errors, such as that of a full disk, have ended the transaction already.
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise


class SQLiteReader:
    """A table open for look-ups."""

    def __init__(self, sink: SQLite, dataset: str) -> None:
        self._place, self._target = sink.place(dataset), sink.target(dataset)
        if not Path(sink.path).exists():
            raise fault("NOTHING_SERVED", store=self._place.name)
        address = f"{Path(sink.path).absolute().as_uri()}?mode=ro"
        with _translating_errors(self._place):
            self._db = sqlite3.connect(address, _WAIT_S, uri=True, check_same_thread=False)
            try:
                columns = self._known_columns()
            except BaseException:
                self._db.close()
                raise
        self.columns = {column.name: column for column in columns_from_json(columns)}

    def _known_columns(self) -> str:
        there = self._db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (sql.FENCE,))
        fences, found = sql.FenceTable(sql.FENCE, "?"), None
        if there.fetchone() is not None:
            found = self._db.execute(fences.columns, (self._target,)).fetchone()
        if found is None:
            raise fault("NOTHING_SERVED", store=self._place.name)
        return str(found[0])

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the row of a key."""
        table = sql.quoted(self._target)
        # Without the table's name, SQLite reads a column that is gone as a quoted text.
        same = " AND ".join(f"{table}.{sql.quoted(name)} = ?" for name in key)
        wanted = ", ".join(f"{table}.{sql.quoted(name)}" for name in self.columns)
        values = [scalar_of(value, self.columns[name]) for name, value in key.items()]
        query = f"SELECT {wanted} FROM {table} WHERE {same}"
        try:
            with _translating_errors(self._place):
                row = self._db.execute(query, values).fetchone()
        except OverflowError:
            # No row has a number that SQLite cannot hold.
            return None
        if row is None:
            return None
        return row_from_store(self.columns.values(), row, self._place)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _compared(one: str, other: str) -> int:
    return int(Decimal(one).compare(Decimal(other)))


def _wanted(column: Column) -> WantedColumn:
    kind = _TYPES.get(column.type, "TEXT")
    return WantedColumn(kind, (kind, "BLOB"))


def _held(declared: str, is_required: int, default: object, in_key: int) -> StoredColumn:
    is_filled = default is not None or (in_key and declared.upper() == "INTEGER")
    return StoredColumn(declared, _affinity(declared), bool(is_required) and not is_filled)


def _affinity(declared: str) -> str:
    """Return the affinity of a declared type: https://sqlite.org/datatype3.html, 3.1."""
    if not declared:
        return "BLOB"
    return next((kind for part, kind in _AFFINITIES if part in declared.upper()), "NUMERIC")


@contextmanager
def _translating_errors(place: Place) -> Iterator[None]:
    """Translate errors of SQLite into errors of Millstream."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _TRANSIENT:
            raise fault("STORE_UNREACHABLE", store=place.name, why=str(error)) from error
        raise fault("STORE_FAILED", store=place.name, why=str(error)) from error
    except OSError as error:
        raise fault("STORE_FAILED", store=place.name, why=error.strerror or str(error)) from error
