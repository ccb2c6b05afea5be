"""Faults of a real broker, driven without Spark: nothing is lost, nothing is written twice."""

from __future__ import annotations

import itertools
import json
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from tests.faults import raises
from tests.proxy import Proxy
from tests.systems.stores import (
    ARROW,
    connected,
    delete_topic,
    make_topic,
    opened,
    put,
    records_of,
    rows_in,
    shape,
    table,
    values_of,
)

import millstream as ms
from millstream.errors import StoreRestoredError, StoreUnreachableError
from millstream.serve.fence import Driver
from millstream.serve.shape import GONE, Column
from millstream.systems.kafka import broker as store_broker, sink as store_kafka
from millstream.testing.server import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.lake.fence import Fence
    from millstream.serve.store import Refused
    from millstream.systems.kafka.topic import Topic
    from millstream.testing.kafka import Broker

pytestmark = pytest.mark.kafka
NUMBERS = itertools.count()
ENDS_A_TRANSACTION = re.compile(rb"\x00\x1a\x00..{4}\x00\x07rdkafka", re.DOTALL)
"""Kafka's EndTxn, of any version, from its number to who asks; other requests may be before it."""
ONE, TWO = {"id": 1, "text": "a"}, {"id": 2, "text": "b"}


@pytest.fixture
def sink(broker: Broker) -> Callable[..., Topic]:
    """Give the function that makes a sink, with a topic of its own."""

    def made(*, servers: str = "", config: dict[str, str] | None = None, **options: Any) -> Topic:
        name = f"faults-{next(NUMBERS)}"
        make_topic(broker.servers, name, **(config or {}))
        return ms.Kafka(name, servers or broker.servers, **options).in_batches()

    return made


def test_a_commit_whose_answer_is_lost_is_not_done_twice(
    broker: Broker, sink: Callable[..., Topic]
) -> None:
    with Proxy(broker.proxied_port, at=broker.proxy_port) as proxy:
        topic = sink(servers=f"{HOST}:{broker.proxy_port}")
        store = opened(topic, mode="append")
        proxy.cut_reply_when(lambda heard: bool(ENDS_A_TRANSACTION.search(heard)))
        put(store, 0, table(ONE))
        put(store, 1, table(TWO))

        assert proxy.cuts == 1
        assert values_of(topic) == [ONE, TWO]


def test_a_broker_that_dies_in_the_middle_of_a_batch_has_it_once_when_it_is_back(
    broker: Broker, sink: Callable[..., Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = sink()
    store = opened(topic, mode="append")
    put(store, 0, table(ONE))
    # The broker marks a commit a moment after it has said so; this one it is to have marked.
    assert store.fence() is not None

    def die(_: Sequence[Refused]) -> str:
        broker.kill()
        return ""

    monkeypatch.setattr(store_broker, "_ANSWERS_WITHIN_S", 0.5)
    monkeypatch.setattr(store_kafka, "_ENDS_WITHIN_S", 1.0)
    with pytest.raises(StoreUnreachableError) as gone:
        put(store, 1, table(TWO), settle=die)
    with pytest.raises(StoreUnreachableError):
        opened(topic, epoch=2)
    monkeypatch.undo()
    broker.start()

    assert gone.value.transient
    fence = store.fence()
    assert fence is not None
    assert fence.batch == 0
    assert put(store, 1, table(TWO)).applied
    assert values_of(topic) == [ONE, TWO]


def test_a_wrong_password_is_reported_as_such_and_the_right_one_is_accepted(
    broker: Broker, sink: Callable[..., Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    def secured(password: str) -> Topic:
        login = f'PlainLoginModule required username="shop" password="{password}";'
        options = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": login,
        }
        return sink(servers=f"{HOST}:{broker.secured_port}", options=options)

    monkeypatch.setattr(store_broker, "_ANSWERS_WITHIN_S", 5.0)
    with raises("STORE_LOGIN") as refused:
        opened(secured("open"), mode="append")
    monkeypatch.undo()
    topic = secured("sesame")
    put(opened(topic, mode="append"), 0, table(ONE))

    assert "refuses the login" in str(refused.value)
    assert "open" not in str(refused.value)
    assert values_of(topic) == [ONE]


def test_a_topic_that_is_missing_or_made_anew_is_noticed(
    broker: Broker, sink: Callable[..., Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = sink()
    store = opened(topic, mode="append")
    put(store, 0, table(ONE))
    delete_topic(broker.servers, topic.name)
    store.__setattr__("_look_again_at", 0.0)

    with raises("TOPIC_MISSING", match=f"serve 'items': topic '{topic.name}' does not"):
        put(store, 1, table(TWO))
    make_topic(broker.servers, topic.name)
    with pytest.raises(StoreRestoredError, match="holds no batch, but the checkpoint") as reported:
        put(store, 1, table(TWO))

    assert "--delete --topic" in reported.value.fix
    fence = store.fence()
    assert fence is not None
    assert fence.batch == -1
    assert put(store, 0, table(ONE)).applied, "all of it is written again"


def test_a_record_that_is_too_large_is_refused_and_the_others_are_written(
    sink: Callable[..., Topic],
) -> None:
    topic = sink(config={"max.message.bytes": "10000"})
    large = {"id": 3, "text": "x" * 20_000}

    written = put(opened(topic, mode="append"), 0, table(ONE, large, TWO))

    assert [(r.rows.to_pylist(), "too large" in r.reason) for r in written.refused] == [
        ([large], True)
    ]
    assert values_of(topic) == [ONE, TWO]


def test_a_fence_behind_an_open_transaction_of_another_writer_is_waited_for(
    broker: Broker, sink: Callable[..., Topic]
) -> None:
    topic = sink()
    store = opened(topic, mode="append")
    other, _ = left_open(broker, store, "another")
    put(store, 0, table(ONE))
    began, later = time.monotonic(), threading.Timer(0.7, other.abort_transaction)
    later.start()

    held = opened(topic, epoch=2, mode="append").fence()

    later.join()
    assert time.monotonic() - began > 0.6
    assert held is not None
    assert held.batch == 0


def test_a_transaction_that_was_ended_without_a_mark_is_reported_and_not_waited_for(
    broker: Broker, sink: Callable[..., Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = sink()
    store: Any = opened(topic, mode="append")
    put(store, 0, table(ONE))
    # As a broker leaves it that was killed while it marked the end of a transaction.
    other, offset = left_open(broker, store, store._cluster._name)
    monkeypatch.setattr(store_broker, "_MARKS_WITHIN_S", 0.5)

    with raises("TRANSACTION_HANGS") as hangs:
        opened(topic, epoch=2, mode="append")

    assert f"--partition {store._cluster.partition} --start-offset {offset}" in str(hangs.value)
    other.abort_transaction()
    monkeypatch.undo()
    later = opened(topic, epoch=2, mode="append")
    assert put(later, 1, table(TWO)).applied
    assert values_of(topic) == [ONE, TWO]


def left_open(broker: Broker, store: Any, key: str) -> tuple[Producer, int]:
    """Write a fence under a key, in the partition of a store's, and leave the transaction open.

    Gives its producer and the offset of the fence.
    """
    of_its_own = {"bootstrap.servers": broker.servers, "transactional.id": f"left open: {key}"}
    other = Producer(of_its_own, logger=store_broker._discarded)
    other.init_transactions()
    other.begin_transaction()
    written: list[Any] = []
    other.produce(
        store_broker.FENCES,
        "{}",
        key,
        partition=store._cluster.partition,
        on_delivery=lambda error, message: written.append((error, message.offset())),
    )
    other.flush()
    [(error, offset)] = written
    assert error is None
    return other, offset


def sent_and_dead(log: Any, fence: Fence) -> None:
    """Send the fence, and die before the commit."""
    log._cluster.put_fence(log._producer, fence, log._topic)
    log._producer.flush()
    raise KeyboardInterrupt


def test_a_driver_that_died_with_its_fence_sent_and_not_committed_is_not_waited_for(
    broker: Broker, sink: Callable[..., Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = sink()
    store = opened(topic, mode="append")
    put(store, 0, table(ONE))
    monkeypatch.setattr(store_kafka.TopicStore, "_commit", sent_and_dead)
    monkeypatch.setattr(store_kafka.TopicStore, "_leave", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        put(store, 1, table(TWO))
    monkeypatch.undo()
    began = time.monotonic()

    later = opened(topic, epoch=2, mode="append")

    assert time.monotonic() - began < store_broker._MARKS_WITHIN_S
    assert put(later, 1, table(TWO)).applied
    assert values_of(topic) == [ONE, TWO]


def test_several_datasets_may_write_to_one_topic_each_behind_its_own_fence(
    sink: Callable[..., Topic],
) -> None:
    topic = sink()
    ours = opened(topic, mode="append")
    theirs = connected(topic, Driver("shop/others", 1, "query"), mode="append")
    theirs.take()

    put(ours, 0, table(ONE))
    put(theirs, 0, table(TWO))

    assert values_of(topic) == [ONE, TWO]


def test_changes_are_written_as_debezium_does_and_deletes_leave_a_tombstone(
    sink: Callable[..., Topic],
) -> None:
    topic = sink(key="id", delete_when="text = 'gone'", envelope="debezium")
    schema = ARROW.append(pa.field(GONE, pa.bool_()))
    kept, gone = {"id": 1, "text": None, GONE: False}, {"id": 2, "text": "gone", GONE: True}

    put(opened(topic), 0, table(gone, kept, schema=schema))

    reported: list[tuple[Any, Any]] = [
        (k, None if v is None else json.loads(v)) for k, v in records_of(topic)
    ]
    assert [key for key, _ in reported] == [b"2", b"2", b"1"]
    deleted, tombstone, upserted = (value for _, value in reported)
    assert tombstone is None
    assert (deleted["op"], deleted["before"], deleted["after"]) == (
        "d",
        {"id": 2, "text": "gone"},
        None,
    )
    assert (upserted["op"], upserted["before"], upserted["after"]) == (
        "u",
        None,
        {"id": 1, "text": None},
    )
    source = {"connector": "millstream", "name": "shop", "table": "items", "batch": 0}
    assert upserted["source"] == source
    assert upserted["ts_ms"] > 1_700_000_000_000


def test_records_are_texts_or_raw_with_keys_and_headers(sink: Callable[..., Topic]) -> None:
    text, raw = sink(format="text", key="id"), sink(format="raw")
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    fields: Any = [("key", pa.binary()), ("value", pa.binary()), ("headers", header)]
    columns = [Column("key", "binary"), Column("value", "binary"), Column("headers", "json")]
    row = {"key": b"\x00k", "value": b"\xff", "headers": [{"key": "h", "value": b"1"}]}
    bare = {"key": None, "value": b"v", "headers": None}
    of_text: Any = [("id", pa.int64()), ("value", pa.string())]
    texts = table(
        {"id": None, "value": "keyless"}, {"id": 2, "value": "é"}, schema=pa.schema(of_text)
    )
    columns_of_text = [Column("id", "long"), Column("value", "string")]

    put(opened(text, mode="append", columns=columns_of_text), 0, texts)
    put(opened(raw, mode="append", columns=columns), 0, table(row, bare, schema=pa.schema(fields)))

    assert records_of(text) == [(None, b"keyless"), (b"2", "é".encode())]
    assert records_of(raw) == [(b"\x00k", b"\xff"), (None, b"v")]


def test_without_its_client_the_error_names_the_line_that_installs_it(
    sink: Callable[..., Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    topic = ms.Kafka("t").in_batches()

    with raises("EXTRA_MISSING") as missing:
        topic.open(shape(topic), Driver("shop/items", 1))

    assert missing.value.fix == 'pip install "millstream[kafka]"'


def test_a_folded_topic_is_the_table_whatever_batches_were_written_again(
    sink: Callable[..., Topic],
) -> None:
    topic, batches = sink(key="id"), [[ONE], [TWO, {"id": 1, "text": "c"}], [{"id": 2, "text": ""}]]
    for epoch, last in enumerate((1, 2, 2), 1):
        store = opened(topic, epoch=epoch)
        for number in range(last + 1):
            put(store, number, table(*batches[number]))

    assert rows_in(topic) == [{"id": 1, "text": "c"}, {"id": 2, "text": ""}]
    assert len(records_of(topic)) == 4


def test_a_record_whose_header_has_no_key_is_refused(sink: Callable[..., Topic]) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    fields: list[Any] = [("value", pa.string()), ("headers", kind)]
    columns = [Column("value", "string"), Column("headers", "json")]
    topic = sink(format="raw")
    rows: list[dict[str, Any]] = [
        {"value": "a", "headers": [{"key": "k", "value": b"1"}]},
        {"value": "b", "headers": [{"key": None, "value": b"1"}]},
        {"value": "c", "headers": None},
    ]

    store = opened(topic, mode="append", columns=columns)
    written = put(store, 0, table(*rows, schema=pa.schema(fields)))

    assert [(r.rows.num_rows, r.reason) for r in written.refused] == [(1, "a header has no key")]
    assert [value for _, value in records_of(topic)] == [b"a", b"c"]
