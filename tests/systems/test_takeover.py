"""A driver is overtaken while it hands its rows over: one of the two writes the batch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.faults import raises
from tests.systems.conftest import EVERY
from tests.systems.stores import connected, every_row_in, opened, put, row_of, table

from millstream.errors import OvertakenError, StoreUnreachableError
from millstream.lake.fence import PendingBatch
from millstream.serve.fence import Driver, take_fence
from millstream.systems.postgres import sink as postgres_sink
from millstream.systems.postgres.settings import Postgres as PostgresSink
from millstream.systems.redis.settings import Redis as RedisSink
from millstream.systems.sqlite import sink as sqlite_sink
from millstream.systems.sqlite.settings import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from millstream.serve.store import Store
    from millstream.testing.postgres import PostgresServer
    from millstream.testing.redis import RedisServer

    Make = Callable[..., Any]

FIRST, MINE, THEIRS = ({"id": n, "text": text} for n, text in ((1, "first"), (2, "a"), (2, "b")))
LOCKING = ("sqlite", "postgres")
"""Stores in which a driver that comes waits until the batch is written."""
COMING_IN = [one for one in EVERY if one.id not in LOCKING]


def write_with(
    store: Store, batch: int, between: Callable[[], object], *first: dict[str, Any]
) -> bool:
    """Write a batch of two parts, with something done between them."""

    def parts() -> Iterator[pa.Table]:
        yield table(*first)
        between()
        yield table(*([] if first else [MINE]))

    return store.write(PendingBatch("query", batch, "mine"), parts, lambda _: "").applied


@pytest.mark.parametrize("writes", [True, False], ids=["and writes", "only takes"])
@pytest.mark.parametrize("epoch", [2, 1], ids=["later epoch", "same epoch"])
@pytest.mark.parametrize("is_begun", [True, False], ids=["after rows", "before rows"])
@pytest.mark.parametrize("make", COMING_IN, indirect=True)
def test_a_driver_that_is_overtaken_while_it_hands_rows_over_writes_none(
    make: Make, is_begun: bool, epoch: int, writes: bool, request: pytest.FixtureRequest
) -> None:
    sink = make(key=["id"] if request.node.callspec.params["make"] in ("redis", "kafka") else [])
    early, later = opened(sink, mode="append"), list[Any]()
    put(early, 0, table(FIRST))

    def take_over() -> None:
        later.append(opened(sink, epoch=epoch, mode="append"))
        if writes:
            put(later[0], 1, table(THEIRS))

    with pytest.raises(OvertakenError):
        write_with(early, 1, take_over, *([MINE] if is_begun else []))

    assert put(later[0], 1, table(THEIRS)).applied is not writes
    assert every_row_in(sink) == [FIRST, THEIRS]


@pytest.mark.parametrize("make", EVERY, indirect=True)
def test_a_stale_driver_is_refused_whatever_it_asks_for(
    make: Make, request: pytest.FixtureRequest
) -> None:
    sink = make(key=["id"] if request.node.callspec.params["make"] in ("redis", "kafka") else [])
    stale = opened(sink, mode="append")
    put(stale, 0, table(FIRST))
    later = opened(sink, epoch=2, mode="append")
    held = later.fence()

    # In this order: a topic is not asked about a batch that it has, and nothing is written then.
    for batch in (1, 0, 2):
        with pytest.raises(OvertakenError):
            put(stale, batch, table(MINE))
    with pytest.raises(OvertakenError):
        stale.take()
    with pytest.raises(OvertakenError):
        connected(sink, Driver("shop/items", 1, "query"), mode="append").take()

    assert later.fence() == held
    assert every_row_in(sink) == [FIRST]
    assert put(later, 1, table(THEIRS)).applied


@pytest.mark.services
def test_a_chunk_of_redis_is_not_written_by_a_driver_that_was_overtaken_after_the_first(
    redis: RedisServer,
) -> None:
    sink = RedisSink(redis.url, prefix="chunks", key=["id"])
    early, many = opened(sink), 3000
    put(early, 0, table(*({"id": n, "text": "first"} for n in range(many))))

    def parts() -> Iterator[pa.Table]:
        rows = [{"id": n, "text": "mine"} for n in range(many)]
        yield table(*rows[:2000])
        opened(sink, epoch=2)
        yield table(*rows[2000:])

    with pytest.raises(OvertakenError):
        early.write(PendingBatch("query", 1, "mine"), parts, lambda _: "")

    assert row_of(sink, id=0) == {"id": 0, "text": "mine"}, "the first was written before"
    assert row_of(sink, id=many - 1) == {"id": many - 1, "text": "first"}


def until_it_waits_or_is_done(postgres: PostgresServer, thread: threading.Thread) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as db:
        while (
            thread.is_alive()
            and not db.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone()
        ):
            thread.join(0.01)


@pytest.mark.services
@pytest.mark.parametrize("writes", [True, False], ids=["and writes", "only takes"])
def test_a_driver_that_comes_to_postgres_waits_until_the_batch_is_written(
    postgres: PostgresServer, writes: bool
) -> None:
    sink = PostgresSink(postgres.dsn, table=f"takeover_{writes}".lower())
    early = opened(sink, mode="append")
    put(early, 0, table(FIRST))
    theirs, later = list[bool](), connected(sink, Driver("shop/items", 2, "query"), mode="append")

    def take_over() -> None:
        later.take()
        if writes:
            theirs.append(put(later, 1, table(THEIRS)).applied)

    thread = threading.Thread(target=take_over)

    def between() -> None:
        thread.start()
        until_it_waits_or_is_done(postgres, thread)

    try:
        mine = write_with(early, 1, between)
    finally:
        thread.join()

    assert mine
    assert theirs == [False] * writes
    assert every_row_in(sink) == [FIRST, MINE]
    with pytest.raises(OvertakenError):
        put(early, 2, table(MINE))


def test_a_driver_that_comes_to_sqlite_waits_until_the_batch_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = SQLite(str(tmp_path / "s.db"), table="items")
    early = opened(sink, mode="append")
    put(early, 0, table(FIRST))
    monkeypatch.setattr(sqlite_sink, "_WAIT_S", 0.01)

    def take_over() -> None:
        with pytest.raises(StoreUnreachableError, match="locked"):
            opened(sink, epoch=2, mode="append")

    assert write_with(early, 1, take_over)

    later = opened(sink, epoch=2, mode="append")
    assert not put(later, 1, table(THEIRS)).applied
    assert every_row_in(sink) == [FIRST, MINE]


@pytest.mark.services
def test_of_two_first_drivers_of_postgres_one_finds_the_fence_of_the_other(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = PostgresSink(postgres.dsn, table="first_drivers")
    mine = connected(sink, Driver("shop/items", 1, "query"), mode="append")
    theirs = connected(sink, Driver("depot/items", 1, "query"), mode="append")
    refused = list[str]()

    def come() -> None:
        with raises("STORE_TAKEN") as error:
            theirs.take()
        refused.append(error.value.code)

    thread = threading.Thread(target=come)

    def take(*of: Any) -> Any:
        if not thread.ident:
            thread.start()
            until_it_waits_or_is_done(postgres, thread)
        return take_fence(*of)

    monkeypatch.setattr(postgres_sink, "take_fence", take)
    held = mine.take()
    thread.join()

    assert refused == ["STORE_TAKEN"]
    assert mine.fence() == held
