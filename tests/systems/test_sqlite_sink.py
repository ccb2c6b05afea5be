"""What only SQLite does: one file, on a disk that may be full."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

import pytest
from tests.faults import raises
from tests.systems.stores import ITEMS, opened, put, rows_in, table

from millstream.errors import StoreUnreachableError
from millstream.systems.sqlite.settings import SQLite

if TYPE_CHECKING:
    from pathlib import Path

MANY = table(*({"id": n, "text": "x" * 500} for n in range(2000)))


@pytest.fixture
def sink(tmp_path: Path) -> SQLite:
    return SQLite(str(tmp_path / "items.db"), key="id")


def test_a_full_disk_is_reported_and_passes(sink: SQLite) -> None:
    store = opened(sink)
    put(store, 0, table({"id": 1, "text": "a"}))
    db: sqlite3.Connection = store._db  # type: ignore[attr-defined]
    [pages] = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages + 3}")

    with pytest.raises(StoreUnreachableError, match="full"):
        put(store, 1, MANY)
    assert not db.in_transaction
    db.execute("PRAGMA max_page_count = 1000000")

    assert put(store, 1, MANY).applied
    assert len(rows_in(sink)) == MANY.num_rows


def test_a_commit_that_is_refused_leaves_nothing_open(sink: SQLite) -> None:
    with sqlite3.connect(sink.path) as other:
        other.executescript(
            """
            CREATE TABLE known (text TEXT PRIMARY KEY);
            CREATE TABLE items (
              id BIGINT PRIMARY KEY,
              text TEXT REFERENCES known (text) DEFERRABLE INITIALLY DEFERRED
            );
            """
        )
    other.close()
    store = opened(sink)
    db: sqlite3.Connection = store._db  # type: ignore[attr-defined]
    db.execute("PRAGMA foreign_keys = ON")

    with pytest.raises(Exception, match="FOREIGN KEY"):
        put(store, 0, table({"id": 1, "text": "a"}))

    assert not db.in_transaction
    db.execute("INSERT INTO known VALUES ('a')")
    assert put(store, 0, table({"id": 1, "text": "a"})).applied


def test_a_file_that_is_refused_is_closed(sink: SQLite) -> None:
    with sqlite3.connect(sink.path) as other:
        other.execute("CREATE TABLE items (id BIGINT PRIMARY KEY, text REAL)")
    other.close()

    with raises("STORE_COLUMN_TYPE") as kept:
        opened(sink, columns=ITEMS)

    assert kept.value.__traceback__ is not None
    held = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    assert os.path.realpath(sink.path) not in held


def test_rows_beside_one_that_is_refused_are_written_once(tmp_path: Path) -> None:
    sink = SQLite(str(tmp_path / "items.db"))
    with sqlite3.connect(sink.path) as other:
        other.execute("CREATE TABLE items (id BIGINT, text TEXT CHECK (text <> 'bad'))")
    other.close()
    store = opened(sink, mode="append")

    rows = table(*({"id": n, "text": "bad" if n == 2 else "good"} for n in range(4)))
    written = put(store, 0, rows)

    assert [refused.rows["id"].to_pylist() for refused in written.refused] == [[2]]
    assert [row["id"] for row in rows_in(sink)] == [0, 1, 3]
