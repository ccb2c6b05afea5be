"""Postgres tables as stores: a batch is copied in, merged and fenced in one transaction."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.errors import StoreUnreachableError, fault
from millstream.lake.fence import Decision
from millstream.serve.fence import admit_batch, take_fence
from millstream.serve.shape import columns_from_json, columns_to_json
from millstream.serve.store import WriteResult, salvage, split_deleted, split_keyless
from millstream.serve.value import RowsRefusedError, as_csv
from millstream.systems import relational as sql
from millstream.systems.existing_table import StoredColumn, WantedColumn, check_key, columns_to_add
from millstream.systems.postgres.session import BusyError, connect, message_of, translating_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import psycopg
    import pyarrow as pa

    from millstream.lake.fence import Fence, PendingBatch
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Column, Shape
    from millstream.serve.store import Refused, Rows, Settle
    from millstream.systems.postgres.settings import Postgres

Answer = TypeVar("Answer")

_STAGE = "pg_temp.millstream_stage"
_ROOM = " WITH (fillfactor = 50)"
"""Updated rows stay in their page, so that no index has to change."""
_TRIES = 5
_PAUSE_S = 0.05
_OF_A_ROW = ("21", "22", "23", "54", "P0001")
"""Two keys that are one to the table, data, constraints, limits such as the size of an index entry,
and triggers that refuse."""

_TYPES = {
    "boolean": "boolean",
    "byte": "smallint",
    "short": "smallint",
    "integer": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
    "json": "jsonb",
}
_TEXTS = ("text", "character varying", "character", "citext", "uuid", "json", "jsonb", "inet")
_WHOLE = ("smallint", "integer", "bigint", "numeric")
_FITTING = {
    **dict.fromkeys(("byte", "short", "integer", "long"), _WHOLE),
    **dict.fromkeys(("float", "double"), ("real", "double precision", "numeric")),
    "string": _TEXTS,
    "json": ("jsonb", "json", "text"),
    "timestamp": ("timestamp with time zone", "timestamp without time zone"),
    "date": ("date", "timestamp without time zone"),
}
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), format_type(atttypid, NULL),
  attnotnull AND NOT (atthasdef OR attidentity <> '')
FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_UNIQUE = """
SELECT array_agg(attname::text) FROM pg_index JOIN pg_attribute
  ON attrelid = indexrelid
WHERE indrelid = to_regclass(%s) AND indisunique AND indpred IS NULL AND indexprs IS NULL
  AND attnum <= indnkeyatts
GROUP BY indexrelid
"""


class PostgresStore:
    """A table open for writing."""

    def __init__(self, sink: Postgres, shape: Shape, driver: Driver) -> None:
        self.place = sink.place(shape.dataset)
        self._sink, self._shape, self._driver = sink, shape, driver
        self._target = sink.target(shape.dataset)
        self._name = sql.qualified(self._target)
        self._fences = sql.FenceTable(sql.beside(self._target, sql.FENCE), "%s")
        self._connection: psycopg.Connection[Any] | None = None
        try:
            self._retrying(self._prepare)
        except BaseException:
            self.close()
            raise

    def take(self) -> Fence:
        """Write this driver's epoch beside the table."""
        return self._retrying(self._take)

    def fence(self) -> Fence | None:
        """Look at the fence."""
        return self._retrying(self._held)

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Write a batch and its fence in one transaction; again after a conflict."""
        return self._retrying(lambda db: self._write(db, pending, rows, settle))

    def close(self) -> None:
        """Log out."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _retrying(self, act: Callable[[psycopg.Connection[Any]], Answer]) -> Answer:
        """Run `act` in a transaction; again if another was in the way, or the connection broke.

        A commit whose reply was lost may have happened: the fence shows it at the retry.
        """
        import psycopg

        for left in reversed(range(_TRIES)):
            with translating_errors(self.place):
                db = self._connected()
            try:
                with translating_errors(self.place), db.transaction():
                    return act(db)
            except (StoreUnreachableError, BusyError) as error:
                if left == 0:
                    raise fault(
                        "STORE_UNREACHABLE", store=self.place.name, why=str(error.__cause__)
                    ) from error
                time.sleep(_PAUSE_S * 2 ** (_TRIES - left))
            except BaseException:
                if db.info.status is not psycopg.pq.ConnStatus.OK:
                    self.close()
                raise
        raise AssertionError

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._sink, self.place)
        return self._connection

    def _held(self, db: psycopg.Connection[Any], *, lock: bool = False) -> Fence | None:
        query = self._fences.select + (" FOR UPDATE" if lock else "")
        return sql.fence_from(db.execute(query, (self._target,)).fetchone())

    def _take(self, db: psycopg.Connection[Any]) -> Fence:
        held = self._held(db, lock=True)
        if held is None:
            # Two first drivers at the same time would both find no fence to lock.
            db.execute(f"LOCK TABLE {self._fences.name} IN SHARE ROW EXCLUSIVE MODE")
            held = self._held(db, lock=True)
        fence = take_fence(held, self._driver, self.place)
        columns = columns_to_json(self._shape.columns)
        db.execute(self._fences.put, sql.fence_values(self._target, fence, columns))
        return fence

    def _write(
        self,
        db: psycopg.Connection[Any],
        pending: PendingBatch,
        rows: Rows,
        settle: Settle,
    ) -> WriteResult:
        held, decision = admit_batch(self._held(db, lock=True), self._driver, pending, self.place)
        if decision is not Decision.APPLY:
            return WriteResult(decision, held)
        if self._shape.mode == "complete":
            db.execute(f"DELETE FROM {self._name}")
        if self._is_merged:
            names = sql.listed(self._shape.names)
            db.execute(
                f"CREATE TEMP TABLE millstream_stage ON COMMIT DROP AS "
                f"SELECT {names} FROM {self._name} WITH NO DATA"
            )
        refused: list[Refused] = []
        for part in rows():
            kept, lacking = split_keyless(part, self._shape.key)
            refused += lacking + salvage(kept, lambda some: self._apply(db, some))
        fence = held.with_batch(pending, settle(refused))
        db.execute(self._fences.advance, sql.advance_values(self._target, fence))
        return WriteResult(decision, fence, tuple(refused))

    @property
    def _is_merged(self) -> bool:
        return bool(self._shape.key) and self._shape.mode != "complete"

    def _apply(self, db: psycopg.Connection[Any], rows: pa.Table) -> None:
        import psycopg

        try:
            with db.transaction():
                self._put(db, rows)
        except psycopg.Error as error:
            if not (error.sqlstate or "").startswith(_OF_A_ROW):
                raise
            raise RowsRefusedError(message_of(error)) from error

    def _put(self, db: psycopg.Connection[Any], rows: pa.Table) -> None:
        if not self._is_merged:
            self._copy(db, self._name, rows)
            return
        kept, gone = split_deleted(rows)
        if kept.num_rows:
            self._copy(db, _STAGE, kept)
            self._merge(db, kept.num_rows)
        if gone is not None and gone.num_rows:
            if kept.num_rows:
                db.execute(f"TRUNCATE {_STAGE}")
            self._copy(db, _STAGE, gone)
            same = " AND ".join(f"t.{k} = s.{k}" for k in map(sql.quoted, self._shape.key))
            db.execute(f"DELETE FROM {self._name} AS t USING {_STAGE} AS s WHERE {same}")
        db.execute(f"TRUNCATE {_STAGE}")

    def _copy(self, db: psycopg.Connection[Any], into: str, rows: pa.Table) -> None:
        names = sql.listed(self._shape.names)
        command = f"COPY {into} ({names}) FROM STDIN (FORMAT csv, NULL '', ENCODING 'UTF8')"
        with db.cursor() as cursor, cursor.copy(command) as copy:
            copy.write(as_csv(rows, self._shape.columns))

    def _merge(self, db: psycopg.Connection[Any], rows: int) -> None:
        """Update the rows that are there, then insert the others, if there are others.

        With room in their pages for new versions of rows, this takes a third of the time of one
        INSERT … ON CONFLICT; that clause still handles rows that another session adds in between.
        """
        names, table = sql.listed(self._shape.names), self._name
        chosen, changes = (
            self._chosen,
            [f"{n} = s.{n}" for n in map(sql.quoted, self._shape.values)],
        )
        same = " AND ".join(f"kept.{k} = s.{k}" for k in map(sql.quoted, self._shape.key))
        if changes:
            update = f"UPDATE {table} AS kept SET {', '.join(changes)} FROM {chosen} AS s"
            if db.execute(f"{update} WHERE {same}{self._is_newer}").rowcount == rows:
                return
        absent = f"NOT EXISTS (SELECT FROM {table} AS kept WHERE {same})"
        clause = sql.on_conflict(self._shape, "new")
        insert = f"INSERT INTO {table} AS new ({names}) SELECT {names} FROM {chosen} AS s"
        db.execute(f"{insert} WHERE {absent}{clause}")

    @property
    def _chosen(self) -> str:
        if not self._shape.newest_by:
            return _STAGE
        key, newest = sql.listed(self._shape.key), sql.quoted(self._shape.newest_by)
        order = f"ORDER BY {key}, {newest} DESC NULLS LAST"
        return f"(SELECT DISTINCT ON ({key}) * FROM {_STAGE} {order})"

    @property
    def _is_newer(self) -> str:
        if not self._shape.newest_by:
            return ""
        newest = sql.quoted(self._shape.newest_by)
        return f" AND (kept.{newest} IS NULL OR s.{newest} >= kept.{newest})"

    def _prepare(self, db: psycopg.Connection[Any]) -> None:
        db.execute(self._fences.create)
        rows = db.execute(_COLUMNS, (self._name,)).fetchall()
        wanted = {c.name: _wanted(c) for c in self._shape.columns}
        if not rows:
            types = {name: column.type for name, column in wanted.items()}
            create = sql.create_table(self._name, types, self._shape.key)
            db.execute(create + (_ROOM if self._is_merged else ""))
            return
        held = {name: StoredColumn(*of) for name, *of in rows}
        for name in columns_to_add(held, wanted, self._shape, self.place):
            column = f"{sql.quoted(name)} {wanted[name].type}"
            db.execute(f"ALTER TABLE {self._name} ADD COLUMN {column}")
        if self._is_merged:
            indexes = [set(row[0]) for row in db.execute(_UNIQUE, (self._name,)).fetchall()]
            check_key(indexes, self._shape, self.place, self._name)


class PostgresReader:
    """A table open for look-ups."""

    def __init__(self, sink: Postgres, dataset: str) -> None:
        self._place, target = sink.place(dataset), sink.target(dataset)
        self._name = sql.qualified(target)
        self._db = connect(sink, self._place, is_lookup=True)
        try:
            with translating_errors(self._place):
                columns = self._known_columns(target)
        except BaseException:
            self._db.close()
            raise
        self.columns = {column.name: column for column in columns_from_json(columns)}

    def _known_columns(self, target: str) -> str:
        fences = sql.FenceTable(sql.beside(target, sql.FENCE), "%s")
        [there] = self._db.execute("SELECT to_regclass(%s)", (fences.name,)).fetchone() or (None,)
        found = self._db.execute(fences.columns, (target,)).fetchone() if there else None
        if not found:
            raise fault("NOTHING_SERVED", store=self._place.name)
        return str(found[0])

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the row of a key."""
        same = " AND ".join(f"{_escaped(sql.quoted(name))} = %s" for name in key)
        query = f"{_escaped(f'SELECT {sql.listed(self.columns)} FROM {self._name}')} WHERE {same}"
        try:
            with translating_errors(self._place):
                row = self._row(query, [_parameter(value) for value in key.values()])
        except BusyError as error:
            raise fault(
                "STORE_UNREACHABLE", store=self._place.name, why=str(error.__cause__)
            ) from error
        return None if row is None else dict(zip(self.columns, row, strict=True))

    def _row(self, query: str, values: Sequence[Any]) -> Any:
        import psycopg

        try:
            found = self._db.execute(query, values)
        except psycopg.DataError:
            # No row has a value that Postgres cannot hold.
            return None
        except psycopg.errors.QueryCanceled as error:
            raise fault(
                "STORE_UNREACHABLE", store=self._place.name, why=message_of(error)
            ) from error
        return found.fetchone()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _escaped(query: str) -> str:
    """Escape percent signs in a query that has parameters."""
    return query.replace("%", "%%")


def _parameter(value: Any) -> Any:
    from psycopg.types.json import Jsonb

    return Jsonb(value) if isinstance(value, dict | list) else value


def _wanted(column: Column) -> WantedColumn:
    if column.is_decimal:
        return WantedColumn(column.type.replace("decimal", "numeric"), ("numeric",))
    kind = _TYPES[column.type]
    return WantedColumn(kind, _FITTING.get(column.type, (kind,)))
