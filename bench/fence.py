"""What the fence costs: a batch of one row into every store, and the same row without a fence.

python -m bench.fence
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deltalake import DeltaTable, write_deltalake

import millstream as ms
from bench.stores import batch, ours, postgres_by_hand, redis_by_hand, sqlite_by_hand
from millstream.systems.delta.settings import DeltaPath
from millstream.systems.files.settings import FileSink
from millstream.systems.postgres.settings import Postgres as PostgresSink
from millstream.systems.redis.settings import Redis as RedisSink
from millstream.systems.sqlite.settings import SQLite
from millstream.testing.kafka import Broker
from millstream.testing.postgres import PostgresServer
from millstream.testing.redis import RedisServer

if TYPE_CHECKING:
    import pyarrow as pa

    from bench.stores import Write

HERE = Path(__file__).parent
ROUNDS, PAUSE_S, AT_MOST_MS = 60, 0.1, 10
SIDES = ("ours, ms", "without a fence, ms", "without a transaction, ms")


def delta_by_hand(path: str) -> Write:
    write_deltalake(path, batch(0).slice(0, 1))

    def write(_: int, rows: pa.Table) -> None:
        merge = DeltaTable(path).merge(rows, "o.page = n.page", source_alias="n", target_alias="o")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    return write


def files_by_hand(folder: Path) -> Write:
    folder.mkdir()

    def write(number: int, rows: pa.Table) -> None:
        """Write a file that a reader sees whole or not at all, and that outlives the machine."""
        hidden = folder / f".{number}"
        with hidden.open("wb") as file:
            pq.write_table(rows, file)
            file.flush()
            os.fsync(file.fileno())
        hidden.rename(folder / f"{number}.parquet")
        held = os.open(folder, os.O_RDONLY)
        os.fsync(held)
        os.close(held)

    return write


def kafka_by_hand(servers: str, topic: str, transaction: str | None = None) -> Write:
    settings: dict[str, Any] = {"bootstrap.servers": servers, "linger.ms": 0, "acks": "all"}
    producer = Producer(settings | ({"transactional.id": transaction} if transaction else {}))
    if transaction:
        producer.init_transactions()

    def write(_: int, rows: pa.Table) -> None:
        if transaction:
            producer.begin_transaction()
        for row in rows.to_pylist():
            producer.produce(topic, json.dumps(row, default=str), row["page"])
        if transaction:
            producer.commit_transaction()
        else:
            producer.flush()

    return write


def milliseconds(*sides: Write) -> list[float]:
    """What a batch of one row costs on each side, one after the other, with pauses between."""
    one = batch(0).slice(0, 1)
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(ROUNDS):
        for write, times in zip(sides, taken, strict=True):
            began = time.monotonic()
            write(number, one)
            times.append((time.monotonic() - began) * 1000)
            time.sleep(PAUSE_S)
    return [round(statistics.median(times), 2) for times in taken]


def main() -> None:
    report: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    report["wanted at most, ms"] = AT_MOST_MS
    with ExitStack() as stack:
        postgres, cache = stack.enter_context(PostgresServer()), stack.enter_context(RedisServer())
        broker = stack.enter_context(Broker())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        admin = AdminClient({"bootstrap.servers": broker.servers})
        for made in admin.create_topics([NewTopic("ours"), NewTopic("hand")]).values():
            made.result()
        sinks: dict[str, tuple[Any, list[Write]]] = {
            "Postgres": (
                PostgresSink(postgres.dsn, key="page"),
                [postgres_by_hand(postgres.dsn, many=False)],
            ),
            "SQLite": (SQLite(f"{folder}/s.db", key="page"), [sqlite_by_hand(f"{folder}/h.db")]),
            "Redis": (RedisSink(cache.url, key="page"), [redis_by_hand(cache.url)]),
            "Delta": (DeltaPath(f"{folder}/d", key="page"), [delta_by_hand(f"{folder}/dh")]),
            "files": (FileSink(f"{folder}/f"), [files_by_hand(folder / "fh")]),
            "Kafka": (
                ms.Kafka("ours", broker.servers, key="page").in_batches(),
                [
                    kafka_by_hand(broker.servers, "hand", "by hand"),
                    kafka_by_hand(broker.servers, "hand"),
                ],
            ),
        }
        for name, (sink, by_hand) in sinks.items():
            fenced, *without = milliseconds(ours(sink), *by_hand)
            reported = dict(zip(SIDES, (fenced, *without), strict=False))
            report[name] = reported | {"the fence, ms": round(fenced - without[0], 2)}
            print(name, report[name], flush=True)
    (HERE / "results" / "fence.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
