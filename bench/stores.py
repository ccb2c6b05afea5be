"""Upserts into real stores, fenced, against what is written by hand in foreachBatch; no JVM."""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import redis

from millstream.errors import Location
from millstream.lake.fence import PendingBatch
from millstream.serve.fence import Driver
from millstream.serve.shape import Column, Shape
from millstream.systems.postgres.settings import Postgres as PostgresSink
from millstream.systems.redis.settings import Redis as RedisSink
from millstream.systems.sqlite.settings import SQLite
from millstream.testing.postgres import PostgresServer
from millstream.testing.redis import RedisServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[int, pa.Table], None]

HERE = Path(__file__).parent
KEYS, BATCHES, FEW = 100_000, 10, 10_000
# By hand, fewer rows are timed: all of them would take many minutes.
COLUMNS = (
    Column("page", "string"),
    Column("n", "long"),
    Column("mean", "double"),
    Column("last", "timestamp"),
)
CREATE = "CREATE TABLE {} (page TEXT PRIMARY KEY, n BIGINT, mean DOUBLE PRECISION, last {})"
UPSERT = (
    "INSERT INTO {} VALUES ({}) ON CONFLICT (page) DO UPDATE SET "
    "n = excluded.n, mean = excluded.mean, last = excluded.last"
)


def batch(number: int) -> pa.Table:
    """Give a row for every key, as an aggregate in update mode would."""
    return pa.table(
        {
            "page": [f"/page/{key}" for key in range(KEYS)],
            "n": pa.array([number + key for key in range(KEYS)], pa.int64()),
            "mean": [key / 7 + number for key in range(KEYS)],
            "last": pa.array(
                [1_700_000_000_000_000 + key for key in range(KEYS)], pa.timestamp("us", "UTC")
            ),
        }
    )


def ours(sink: Any) -> Write:
    shape = Shape("ours", "update", COLUMNS, ("page",), Location("bench", 1))
    store = sink.open(shape, Driver("bench/ours", 1))
    store.take()

    def write(number: int, rows: pa.Table) -> None:
        store.write(PendingBatch("query", number, str(number)), lambda: [rows], lambda _: "")

    return write


def values(rows: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def postgres_by_hand(dsn: str, *, many: bool) -> Write:
    db = psycopg.connect(dsn)
    name = "many" if many else "rows"
    db.execute(CREATE.format(name, "TIMESTAMPTZ"))
    statement = UPSERT.format(name, "%s, %s, %s, %s")

    def write(_: int, rows: pa.Table) -> None:
        with db.cursor() as cursor:
            if many:
                cursor.executemany(statement, values(rows))
            else:
                for row in values(rows):
                    cursor.execute(statement, row)
        db.commit()

    return write


def sqlite_by_hand(path: str) -> Write:
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = WAL; " + CREATE.format("rows", "TEXT"))
    statement = UPSERT.format("rows", "?, ?, ?, ?")

    def write(_: int, rows: pa.Table) -> None:
        for page, n, mean, last in values(rows):
            db.execute(statement, (page, n, mean, last.isoformat()))
        db.commit()

    return write


def redis_by_hand(url: str) -> Write:
    db: Any = redis.Redis.from_url(url)

    def write(_: int, rows: pa.Table) -> None:
        for page, n, mean, last in values(rows):
            row = {"page": page, "n": n, "mean": mean, "last": last.isoformat()}
            db.hset(f"hand:{page}", mapping=row)

    return write


def rate(write: Write, batches: Sequence[pa.Table]) -> float:
    """Rows per second in the middle batch."""
    taken = []
    for number, rows in enumerate(batches):
        began = time.monotonic()
        write(number, rows)
        taken.append(time.monotonic() - began)
    return batches[0].num_rows / statistics.median(taken)


def main() -> None:
    report: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    report |= {"keys": KEYS, "rows": KEYS * BATCHES}
    many = [batch(number) for number in range(BATCHES)]
    few = [rows.slice(0, FEW) for rows in many[:3]]
    with (
        PostgresServer() as postgres,
        RedisServer() as cache,
        tempfile.TemporaryDirectory() as folder,
    ):
        sides = {
            "Postgres": (
                PostgresSink(postgres.dsn, key="page"),
                postgres_by_hand(postgres.dsn, many=False),
            ),
            "SQLite": (
                SQLite(f"{folder}/ours.db", key="page"),
                sqlite_by_hand(f"{folder}/hand.db"),
            ),
            "Redis": (RedisSink(cache.url, key="page"), redis_by_hand(cache.url)),
        }
        for name, (sink, by_hand) in sides.items():
            found = {"ours": rate(ours(sink), many), "row by row": rate(by_hand, few)}
            if name == "Postgres":
                found["executemany"] = rate(postgres_by_hand(postgres.dsn, many=True), many[:3])
            reported: dict[str, float] = {f"{side}, rows/s": round(f) for side, f in found.items()}
            for side in [side for side in found if side != "ours"]:
                reported[f"ratio to {side}"] = round(found["ours"] / found[side], 1)
            report[name] = reported
            print(name, reported, flush=True)
    (HERE / "results" / "stores.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
