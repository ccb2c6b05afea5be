"""Faults of a real Redis server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults import raises
from tests.proxy import Proxy
from tests.systems.stores import opened, put, row_of, rows_in, table

from millstream.errors import StoreRestoredError, StoreUnreachableError
from millstream.systems.redis.settings import Redis as Sink

if TYPE_CHECKING:
    from millstream.testing.redis import RedisServer

pytestmark = pytest.mark.services


def test_a_script_whose_answer_is_lost_is_not_done_twice(redis: RedisServer) -> None:
    with Proxy(redis.port) as proxy:
        sink = Sink(redis.address(proxy.port), prefix="lost_answer", key=["id"])
        store = opened(sink)
        many = table(*({"id": n, "text": "a"} for n in range(2500)))
        put(store, 0, many)
        proxy.cut_reply_to(b"EVALSHA")
        put(store, 1, table({"id": 1, "text": "b"}))

        assert proxy.cuts == 1
        assert row_of(sink, id=1) == {"id": 1, "text": "b"}
        assert len(rows_in(sink)) == 2500


def test_a_server_that_is_killed_still_has_what_it_confirmed(redis: RedisServer) -> None:
    sink = Sink(redis.url, prefix="killed_server", key=["id"])
    store = opened(sink)
    put(store, 0, table({"id": 1, "text": "a"}))

    redis.kill()
    with pytest.raises(StoreUnreachableError):
        put(store, 1, table({"id": 1, "text": "b"}))
    redis.start()

    fence = store.fence()
    assert fence is not None
    assert fence.batch == 0
    assert put(store, 1, table({"id": 1, "text": "b"})).applied


def test_a_server_that_has_lost_its_data_is_refused(redis: RedisServer) -> None:
    sink = Sink(redis.url, prefix="flushed", key=["id"])
    store = opened(sink)
    put(store, 0, table({"id": 1, "text": "a"}))
    store.__getattribute__("_db").delete("millstream:fence:flushed")

    with pytest.raises(StoreRestoredError, match="holds no batch"):
        put(store, 1, table({"id": 1, "text": "b"}))


def test_keys_of_several_columns_cannot_be_mistaken(redis: RedisServer) -> None:
    sink = Sink(redis.url, prefix="several", key=["text", "id"])
    store = opened(sink)

    put(
        store, 0, table({"text": "a:1", "id": 1}, {"text": "a", "id": 11}, {"text": "%3A", "id": 1})
    )

    assert row_of(sink, text="a:1", id=1) == {"text": "a:1", "id": 1}
    assert row_of(sink, text="a:", id=11) is None
    assert row_of(sink, text="%3A", id=1) == {"text": "%3A", "id": 1}


def test_no_server_and_a_wrong_password_are_different_errors(
    redis: RedisServer, nobody: int
) -> None:
    with pytest.raises(StoreUnreachableError) as unreachable:
        opened(Sink(redis.address(nobody), key=["id"]))
    with raises("STORE_LOGIN") as wrong:
        opened(Sink(redis.address(redis.port, password="wrong-word"), key=["id"]))

    reported = f"{unreachable.value} {wrong.value} {Sink(redis.url)!r}"
    assert redis.password not in reported
    assert "wrong-word" not in reported


def test_keys_of_several_columns_have_names_of_their_own(redis: RedisServer) -> None:
    sink = Sink(redis.url, prefix="names", key=["id", "text"])
    rows = [{"id": 1, "text": text} for text in (":", "%3A", "%", "%25", "a:b")]

    put(opened(sink), 0, table(*rows))

    assert [row_of(sink, **row) for row in rows] == rows
    assert len(rows_in(sink)) == len(rows)
