"""Tables of SQLite and Postgres that are there already, and rows that they refuse."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from tests.faults import raises
from tests.systems.stores import opened, put, row_of, rows_in, table

from millstream.serve.shape import Column
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]

pytestmark = pytest.mark.parametrize(
    "make",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.services)],
    indirect=True,
)


def run(sink: Any, statement: str) -> None:
    """Run something in a store by its own client."""
    statement = statement.format(sink.table)
    if hasattr(sink, "path"):
        with sqlite3.connect(sink.path) as file:
            file.execute(statement)
        file.close()
        return
    with psycopg.connect(revealed(sink.dsn)) as db:
        db.execute(statement)


def test_a_table_without_a_key_takes_every_row(make: Make) -> None:
    sink = make()
    store = opened(sink, mode="append")

    put(store, 0, table({"id": 1, "text": "a"}, {"id": 1, "text": "a"}))
    put(store, 1, table({"id": 1, "text": None}))

    assert len(rows_in(sink)) == 3


def test_a_complete_answer_takes_the_place_of_the_one_before(make: Make) -> None:
    sink = make(key=["id"])
    store = opened(sink, mode="complete")

    put(store, 0, table({"id": 1, "text": "a"}, {"id": 2, "text": "b"}))
    put(store, 1, table({"id": 3, "text": "c"}), table({"id": 1, "text": "d"}))

    assert rows_in(sink) == [{"id": 1, "text": "d"}, {"id": 3, "text": "c"}]


def test_rows_the_table_refuses_are_found_and_the_others_written(make: Make) -> None:
    sink = make(key=["id"])
    run(sink, "CREATE TABLE {} (id BIGINT PRIMARY KEY, text TEXT, CHECK (length(text) <= 3))")
    bad = {17: "far too long", 63: "too long", 99: "long"}
    rows = [{"id": n, "text": bad.get(n, "ok")} for n in range(100)]

    written = put(opened(sink), 0, table(*rows))

    refused = {r.rows.to_pylist()[0]["id"]: r.reason for r in written.refused}
    assert refused.keys() == bad.keys()
    assert all("check constraint" in why.lower() for why in refused.values()), refused
    assert {row["id"] for row in rows_in(sink)} == set(range(100)) - bad.keys()


def test_a_table_with_another_type_is_refused(make: Make) -> None:
    sink = make(key=["id"])
    run(sink, "CREATE TABLE {} (id BIGINT PRIMARY KEY, text DOUBLE PRECISION)")

    with raises("STORE_COLUMN_TYPE", match=r"column 'text' as (?i:double precision); the"):
        opened(sink)


def test_a_table_that_lacks_a_column_is_refused_or_given_it(make: Make) -> None:
    strict, evolving = make(key=["id"]), make(key=["id"], evolve=True)
    run(strict, "CREATE TABLE {} (id BIGINT PRIMARY KEY)")
    run(strict, "INSERT INTO {} VALUES (1)")

    with raises("STORE_COLUMN_MISSING", match="has no column 'text'"):
        opened(strict)
    put(opened(evolving), 0, table({"id": 2, "text": "b"}))

    assert rows_in(strict) == [{"id": 1, "text": None}, {"id": 2, "text": "b"}]


def test_a_column_the_answer_lacks_must_be_filled_by_the_store(make: Make) -> None:
    sink = make(key=["id"])
    columns = "id BIGINT PRIMARY KEY, text TEXT, more INT, n INT NOT NULL DEFAULT 7"
    run(sink, f"CREATE TABLE {{}} ({columns})")
    put(opened(sink), 0, table({"id": 1, "text": "a"}))
    assert rows_in(sink) == [{"id": 1, "text": "a", "more": None, "n": 7}]
    run(sink, "DROP TABLE {}")
    run(sink, f"CREATE TABLE {{}} ({columns}, wanted TEXT NOT NULL)")

    with raises("STORE_COLUMN_REQUIRED", match="requires a value for 'wanted'"):
        opened(sink)


def test_a_table_must_hold_its_rows_to_the_key(make: Make) -> None:
    sink = make(key=["id"])
    run(sink, "CREATE TABLE {} (id BIGINT NOT NULL, text TEXT, UNIQUE (id, text))")

    with raises("STORE_KEY", match="no unique index on its key") as reported:
        opened(sink)
    run(sink, reported.value.fix.removeprefix("run `").rstrip("`"))

    put(opened(sink), 0, table({"id": 1, "text": "a"}))
    assert rows_in(sink) == [{"id": 1, "text": "a"}]


def test_names_are_quoted(make: Make) -> None:
    odd = 'or"der %s %'
    sink = make(name="select", key=[odd])
    columns = (Column(odd, "long"), Column("group", "string"))
    fields: list[Any] = [(odd, pa.int64()), ("group", pa.string())]
    store = opened(sink, columns=columns)

    put(store, 0, table({odd: 1, "group": "a"}, schema=pa.schema(fields)))
    put(store, 1, table({odd: 1, "group": "b"}, schema=pa.schema(fields)))

    assert rows_in(sink) == [{odd: 1, "group": "b"}]
    assert row_of(sink, **{odd: 1}) == {odd: 1, "group": "b"}
