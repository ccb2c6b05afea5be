"""Faults of a real Postgres server: nothing is lost, nothing is written twice."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from tests.faults import raises
from tests.proxy import Proxy
from tests.systems.stores import opened, put, rows_in, table

from millstream.errors import StoreFailedError, StoreUnreachableError
from millstream.serve.shape import Column
from millstream.systems.postgres import session
from millstream.systems.postgres.session import connect
from millstream.systems.postgres.settings import Postgres as Sink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.serve.store import Refused
    from millstream.testing.postgres import PostgresServer

pytestmark = pytest.mark.services
NUMBERS = itertools.count()


@pytest.fixture
def name() -> str:
    return f"faults_{next(NUMBERS)}"


def test_a_commit_whose_answer_is_lost_is_not_done_twice(
    postgres: PostgresServer, name: str
) -> None:
    with Proxy(postgres.port) as proxy:
        sink = Sink(postgres.address(proxy.port), table=name)
        store = opened(sink, mode="append")
        proxy.cut_reply_to(b"COMMIT")
        put(store, 0, table({"id": 1, "text": "a"}))
        put(store, 1, table({"id": 2, "text": "b"}))

        assert proxy.cuts == 1
        assert rows_in(sink) == [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]


def test_a_server_that_dies_in_the_middle_of_a_batch_gets_it_again(
    postgres: PostgresServer, name: str
) -> None:
    sink = Sink(postgres.dsn, table=name)
    store = opened(sink, mode="append")
    deaths: list[int] = []

    def die_once(_: Sequence[Refused]) -> str:
        if not deaths:
            deaths.append(1)
            postgres.kill()
            postgres.start()
        return ""

    put(store, 0, table({"id": 1, "text": "a"}), settle=die_once)

    assert deaths
    assert rows_in(sink) == [{"id": 1, "text": "a"}]


def test_a_session_that_is_ended_by_the_server_begins_again(
    postgres: PostgresServer, name: str
) -> None:
    sink = Sink(postgres.dsn, table=name)
    store = opened(sink, mode="append")
    with psycopg.connect(postgres.dsn, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'millstream'"
        )

    put(store, 0, table({"id": 1, "text": "a"}))

    assert rows_in(sink) == [{"id": 1, "text": "a"}]


def update_and_commit(db: psycopg.Connection[Any], update: str) -> None:
    db.execute(update, (1,))
    db.commit()


def test_a_deadlock_with_another_session_is_tried_again(
    postgres: PostgresServer, name: str
) -> None:
    sink = Sink(postgres.dsn, table=name, key=["id"])
    store = opened(sink)
    put(store, 0, table({"id": 1, "text": "a"}, {"id": 2, "text": "a"}))
    update = f"UPDATE {name} SET text = 'theirs' WHERE id = %s"
    with psycopg.connect(postgres.dsn) as other:
        other.execute("SET deadlock_timeout = '10s'")
        other.execute(update, (2,))
        theirs = threading.Timer(0.2, update_and_commit, (other, update))
        theirs.start()

        put(store, 1, table({"id": 1, "text": "ours"}), table({"id": 2, "text": "ours"}))
        theirs.join()

    assert {row["text"] for row in rows_in(sink)} == {"ours"}


def test_values_that_postgres_refuses_are_refused_in_its_own_words(
    postgres: PostgresServer, name: str
) -> None:
    with psycopg.connect(postgres.dsn) as db:
        kinds = "id SMALLINT PRIMARY KEY, text VARCHAR(5), price NUMERIC(4,2), at TIMESTAMPTZ"
        db.execute(f"CREATE TABLE {name} ({kinds})")
    columns = [Column("id", "long"), Column("text", "string"), Column("price", "double")]
    kinds_of: list[Any] = [("id", pa.int64()), ("text", pa.string()), ("price", pa.float64())]
    schema = pa.schema(kinds_of)
    rows: list[dict[str, Any]] = [
        {"id": 1, "text": "nul\0", "price": 1.0},
        {"id": 2, "text": "six...", "price": 1.0},
        {"id": 70_000, "text": "big", "price": 1.0},
        {"id": 4, "text": "good", "price": 100.0},
        {"id": 5, "text": "good", "price": None},
    ]
    store = opened(Sink(postgres.dsn, table=name, key=["id"]), columns=columns)

    written = put(store, 0, table(*rows, schema=schema))

    assert {r.rows.to_pylist()[0]["id"]: r.reason for r in written.refused} == {
        1: 'invalid byte sequence for encoding "UTF8": 0x00',
        2: "value too long for type character varying(5)",
        70_000: 'value "70000" is out of range for type smallint',
        4: "numeric field overflow",
    }


def test_no_server_a_wrong_password_and_a_missing_right_are_different_errors(
    postgres: PostgresServer, name: str, nobody: int
) -> None:
    with pytest.raises(StoreUnreachableError, match="does not answer") as unreachable:
        opened(Sink(postgres.address(nobody), table=name))
    with raises("STORE_LOGIN", match="password authentication failed") as wrong:
        opened(Sink(postgres.address(postgres.port, password="wrong-word"), table=name))
    with psycopg.connect(postgres.dsn) as db:
        db.execute("DROP ROLE IF EXISTS guest")
        db.execute("CREATE ROLE guest LOGIN PASSWORD 'guests-word'")
    guest = postgres.dsn.replace("miller", "guest").replace(postgres.password, "guests-word")
    with pytest.raises(StoreFailedError, match="permission denied") as forbidden:
        opened(Sink(guest, table=name))

    assert unreachable.value.transient
    assert not wrong.value.transient
    sinks = [Sink(postgres.dsn, table=name), Sink(guest, table=name)]
    reported = " ".join(map(str, (unreachable.value, wrong.value, forbidden.value, *sinks)))
    for secret in (postgres.password, "wrong-word", "guests-word"):
        assert secret not in reported
        assert "***" in reported


def test_a_table_may_be_in_a_schema_of_its_own(postgres: PostgresServer, name: str) -> None:
    with psycopg.connect(postgres.dsn) as db:
        db.execute("CREATE SCHEMA IF NOT EXISTS shop")
    sink = Sink(postgres.dsn, table=f"shop.{name}", key=["id"])

    put(opened(sink), 0, table({"id": 1, "text": "a"}))

    assert rows_in(sink) == [{"id": 1, "text": "a"}]


def test_a_line_that_went_silent_is_given_up_unless_the_address_says_when(
    postgres: PostgresServer, name: str
) -> None:
    said = f"{postgres.dsn}{'&' if '?' in postgres.dsn else '?'}keepalives_idle=60"
    for dsn, idle in ((postgres.dsn, "10"), (said, "60")):
        sink = Sink(dsn, table=name)
        db = connect(sink, sink.place("items"))
        reported = db.info.get_parameters()
        db.close()

        assert reported["tcp_user_timeout"] == "30000"
        assert reported["keepalives_idle"] == idle


def test_a_look_up_that_waits_for_a_lock_or_takes_too_long_is_reported(
    postgres: PostgresServer, name: str
) -> None:
    sink = Sink(postgres.dsn, table=name, key="id")
    put(opened(sink), 0, table({"id": 1, "text": "a"}))
    reader: Any = sink.reader("items")
    [(lock,), (statement,)] = [
        reader._db.execute(f"SHOW {word}_timeout").fetchone() for word in ("lock", "statement")
    ]
    assert (lock, statement) == ("3s", "5s")

    with psycopg.connect(postgres.dsn) as other:
        other.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
        for word, ms in (("lock", 50), ("statement", 40)):
            reader._db.execute(f"SET {word}_timeout TO {ms}")
            with pytest.raises(StoreUnreachableError, match=f"due to {word} timeout"):
                reader.get({"id": 1})
    reader._db.execute("SET lock_timeout TO '3s'")
    reader._db.execute("SET statement_timeout TO '5s'")
    assert reader.get({"id": 1}) == {"id": 1, "text": "a"}
    reader.close()


def test_keys_that_are_one_to_the_table_do_not_stop_the_batch(
    postgres: PostgresServer, name: str
) -> None:
    with psycopg.connect(postgres.dsn) as db:
        db.execute(f"CREATE TABLE {name} (text CHAR(3) PRIMARY KEY, id BIGINT)")
    sink = Sink(postgres.dsn, table=name, key="text")
    rows = [{"text": "a", "id": 1}, {"text": "a ", "id": 2}, {"text": "b", "id": 3}]

    assert put(opened(sink), 0, table(*rows)).applied

    found = {row["text"].strip(): row["id"] for row in rows_in(sink)}
    assert found == {"a": 2, "b": 3}


def test_a_look_up_on_a_server_that_hangs_is_given_up(
    postgres: PostgresServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink(postgres.dsn, table=name, key="id")
    put(opened(sink), 0, table({"id": 1, "text": "a"}))
    reader: Any = sink.reader("items")
    monkeypatch.setattr(session, "_ANSWERED_WITHIN_S", 0.3)
    process = reader._db.info.backend_pid

    os.kill(process, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnreachableError, match="nothing was heard for"):
            reader.get({"id": 1})
    finally:
        os.kill(process, signal.SIGCONT)
        reader.close()
