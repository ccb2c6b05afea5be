"""Stores of every kind, driven as the contract suite and the tests drive them."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable

from millstream.errors import Location
from millstream.lake.fence import PendingBatch
from millstream.serve.fence import Driver
from millstream.serve.shape import Column, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from millstream.serve.sink import WritableSink as AnySink
    from millstream.serve.store import Refused, Store, WriteResult

PATIENCE_S = 60.0
OPENED: list[Any] = []
"""What is closed when a test is over."""

AT = Location("app.py", 9)
ITEMS = (Column("id", "long"), Column("text", "string"))
FIELDS: list[Any] = [("id", pa.int64()), ("text", pa.string())]
ARROW = pa.schema(FIELDS)


def shape(
    sink: AnySink,
    *,
    mode: str = "update",
    columns: Sequence[Column] = ITEMS,
    dataset: str = "items",
) -> Shape:
    return Shape(
        dataset,
        mode,
        tuple(columns),
        tuple(sink.key),
        AT,
        evolve=sink.evolve,
        newest_by=sink.newest_by,
    )


def table(*rows: Mapping[str, Any], schema: pa.Schema = ARROW) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema)


def nothing(_: Sequence[Refused]) -> str:
    """What is to be done before a commit: nothing."""
    return "note"


def connected(sink: AnySink, driver: Driver, **of: Any) -> Store:
    store = sink.open(shape(sink, **of), driver)
    OPENED.append(store)
    return store


def opened(sink: AnySink, epoch: int = 1, **of: Any) -> Store:
    store = connected(sink, Driver("shop/items", epoch, "query"), **of)
    store.take()
    return store


def row_of(sink: Any, **key: Any) -> dict[str, Any] | None:
    reader = sink.reader("items")
    try:
        row: dict[str, Any] | None = reader.get(key)
        return row
    finally:
        reader.close()


def put(
    store: Store,
    batch: int,
    *parts: pa.Table,
    settle: Callable[[Sequence[Refused]], str] = nothing,
    digest: str = "",
) -> WriteResult:
    pending = PendingBatch("query", batch, digest or f"digest {batch}")
    return store.write(pending, lambda: parts, settle)


@dataclass
class Driven:
    """A driver's connection to a store, as the contract suite wants it."""

    sink: AnySink
    read_all: Callable[[AnySink], Iterable[Mapping[str, Any]]]
    mode: str = "append"
    _store: Store | None = field(default=None, init=False)

    def open(self, epoch: int) -> int:
        driver = Driver("shop/items", epoch, "query")
        self._store = connected(self.sink, driver, mode=self.mode)
        return self._store.take().batch

    def write(self, batch: int, rows: Iterable[Mapping[str, Any]]) -> None:
        assert self._store is not None
        given = table(*rows)
        self._store.write(
            PendingBatch("query", batch, str(given.to_pylist())), lambda: [given], nothing
        )

    def read(self) -> Iterable[Mapping[str, Any]]:
        return self.read_all(self.sink)


def rows_in(sink: Any, name: str = "items") -> list[dict[str, Any]]:
    """Give all rows of a store by its own client, in the order of their first column."""
    match type(sink).__name__:
        case "SQLite":
            db = sqlite3.connect(sink.path)
            try:
                found = db.execute(f'SELECT * FROM "{sink.table or name}"')
                names = [column[0] for column in found.description]
                rows = [dict(zip(names, row, strict=True)) for row in found]
            finally:
                db.close()
        case "Postgres":
            rows = _of_postgres(sink, name)
        case "DeltaPath":
            rows = DeltaTable(sink.path).to_pyarrow_table().to_pylist()
        case "FileSink":
            files = [f.read_text() for f in Path(sink.path).glob("*.json")]
            rows = [json.loads(line) for text in files for line in text.split("\n") if line]
        case "Topic":
            rows = _latest(records_of(sink)) if sink.key else values_of(sink)
        case _:
            rows = _of_redis(sink, name)
    return sorted(rows, key=lambda row: str(next(iter(row.values()))))


def every_row_in(sink: Any) -> list[dict[str, Any]]:
    """Give all rows of a store; of a topic, all records and not the last of each key."""
    return values_of(sink) if type(sink).__name__ == "Topic" else rows_in(sink)


def every_row_seen_in(sink: Any) -> list[dict[str, Any]]:
    """Give all rows of a store that a reader sees now, even if a transaction is open."""
    if type(sink).__name__ != "Topic":
        return rows_in(sink)
    return _values(_records_before(_end_of(sink, "READ_COMMITTED"), sink))


def records_of(sink: Any) -> list[tuple[bytes | None, bytes | None]]:
    """Give the committed records of a topic, when no transaction is open any more.

    The broker marks a commit a moment after it has said so, and shows no record before.
    """
    end, until = _end_of(sink, "READ_UNCOMMITTED"), time.monotonic() + PATIENCE_S
    while _end_of(sink, "READ_COMMITTED") < end:
        assert time.monotonic() < until, "a transaction is open"
        time.sleep(0.01)
    return _records_before(end, sink)


def _end_of(sink: Any, isolation: str) -> int:
    import confluent_kafka as kafka
    from confluent_kafka import admin

    of: Any = admin
    where = {kafka.TopicPartition(sink.name, 0): of.OffsetSpec.latest()}
    level = getattr(kafka.IsolationLevel, isolation)
    client = of.AdminClient(sink.client)  # what it is asked is not answered when it is gone
    [found] = client.list_offsets(where, isolation_level=level).values()
    return int(found.result().offset)


def _records_before(end: int, sink: Any) -> list[tuple[bytes | None, bytes | None]]:
    import confluent_kafka as kafka

    settings = {
        **sink.client,
        "group.id": "tests",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 20,
    }
    consumer = kafka.Consumer(settings)
    consumer.assign([kafka.TopicPartition(sink.name, 0, 0)])
    found, at = [], 0
    while at < end:
        message: Any = consumer.poll(PATIENCE_S)
        assert message is not None, f"the topic ends at {end}, and nothing comes after {at}"
        at = message.offset()
        if message.error() is None:
            found.append((message.key(), message.value()))
        else:
            assert message.error().code() == kafka.KafkaError._PARTITION_EOF
    consumer.close()
    return found


def values_of(sink: Any) -> list[dict[str, Any]]:
    return _values(records_of(sink))


def _values(records: list[tuple[bytes | None, bytes | None]]) -> list[dict[str, Any]]:
    return [_in_full(json.loads(value)) for _, value in records if value is not None]


def _in_full(row: dict[str, Any]) -> dict[str, Any]:
    """Give the fields back that a record lacks because they are null."""
    return {"id": None, "text": None} | row


def _latest(records: list[tuple[bytes | None, bytes | None]]) -> list[dict[str, Any]]:
    by_key = dict(records)
    return [_in_full(json.loads(value)) for value in by_key.values() if value is not None]


def make_topic(servers: str, name: str, **config: str) -> None:
    from confluent_kafka import admin

    of: Any = admin
    client = of.AdminClient({"bootstrap.servers": servers})
    client.create_topics([of.NewTopic(name, 1, config=config)])[name].result()
    _wait_until(lambda: name in client.list_topics(timeout=PATIENCE_S).topics)


def delete_topic(servers: str, name: str) -> None:
    from confluent_kafka.admin import AdminClient

    client: Any = AdminClient({"bootstrap.servers": servers})
    client.delete_topics([name])[name].result()
    _wait_until(lambda: name not in client.list_topics(timeout=PATIENCE_S).topics)


def _wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what a broker learns from its controller, which answers before that."""
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def _of_postgres(sink: Any, name: str) -> list[dict[str, Any]]:
    import psycopg
    from psycopg.rows import dict_row

    from millstream.settings.secret import revealed

    with psycopg.connect(revealed(sink.dsn), row_factory=dict_row) as db:
        return list(db.execute(f"SELECT * FROM {sink.table or name}"))


def _of_redis(sink: Any, name: str) -> list[dict[str, Any]]:
    import redis

    from millstream.settings.secret import revealed

    db: Any = redis.Redis.from_url(revealed(sink.url))
    reader, prefix = sink.reader(name), sink.prefix or name
    keys = [key.decode().removeprefix(f"{prefix}:") for key in db.scan_iter(f"{prefix}:*")]
    rows = [reader.get({sink.key[0]: key}) for key in keys]
    reader.close()
    db.close()
    return rows
