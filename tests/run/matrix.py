"""One answer served to all six stores by Spark, its driver killed at each named point.

`python -m tests.run.matrix --rounds 6 --document docs/guarantees.md`; in each round another store
comes first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.document import table, write_between_marks
from tests.systems.matrix import KINDS
from tests.systems.stores import every_row_in, make_topic

import millstream as ms
from millstream.crash import POINTS
from millstream.errors import CrashNotReachedError
from millstream.lake.home import Home
from millstream.spark.session import open_session, stop_session
from millstream.testing.kafka import Broker
from millstream.testing.postgres import PostgresServer
from millstream.testing.redis import RedisServer
from millstream.testing.script import Script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC = "matrix"
ROWS = 10


def app_of(sinks: list[Any]) -> ms.App:
    """The application: every row with its number goes to every store."""
    app = ms.App("matrix")
    app.source(name="rows")(lambda: ms.Memory("id BIGINT, text STRING"))

    @app.serve(to=sinks)
    def items(rows: DataFrame) -> DataFrame:
        return rows.selectExpr("id", "upper(text) AS text")

    return app


def judged(sink: Any, sent: int) -> tuple[int, int, int]:
    """Say how many rows are lost, duplicated and wrong."""
    read = sink.in_batches() if isinstance(sink, ms.Kafka) else sink
    held = Counter((int(row["id"]), row["text"]) for row in every_row_in(read))
    numbers = {number for number, _ in held}
    wrong = sum(text != f"ROW {number}" for number, text in held)
    return sent - len(numbers), held.total() - len(numbers), wrong


def crashed(script: Script, sent: int) -> tuple[int, Counter[str]]:
    """Have a driver die at each point, with rows under way; say how many rows were sent."""
    met: Counter[str] = Counter()
    for point in (p for p in POINTS if p != "home_taken"):
        for _ in range(ROWS):
            script.send("rows", id=sent, text=f"row {sent}")
            sent += 1
        try:
            script.crash(after=point, query="items")
        except CrashNotReachedError:
            continue
        met[point] += 1
        script.restart()
    script.drain()
    return sent, met


def report(
    found: dict[str, tuple[int, int, int]], met: Counter[str], sent: int, rounds: int
) -> str:
    heads = ["store", "crashes", "rows", "lost", "duplicated", "wrong"]
    lines = [[KINDS[kind], str(met.total()), str(sent), *map(str, f)] for kind, f in found.items()]
    points = ", ".join(f"`{point}`" for point in met)
    reported = f"{datetime.now(UTC).date()}: {rounds} round{'s' * (rounds > 1)} over {points}."
    return "\n".join([reported, "", *table(heads, lines)])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=len(KINDS))
    parser.add_argument("--document", type=Path)
    given = parser.parse_args()
    met, sent = Counter[str](), 0
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        broker, postgres = opened.enter_context(Broker()), opened.enter_context(PostgresServer())
        cache = opened.enter_context(RedisServer())
        make_topic(broker.servers, TOPIC)
        sinks: dict[str, Any] = {
            "delta": ms.DeltaPath(str(folder / "delta")),
            "kafka": ms.Kafka(TOPIC, broker.servers, key="id"),
            "postgres": ms.Postgres(postgres.dsn, table="items"),
            "sqlite": ms.SQLite(str(folder / "items.db"), table="items"),
            "redis": ms.Redis(cache.url, key="id", prefix="items"),
            "files": ms.FileSink(str(folder / "files"), "json"),
        }
        spark = open_session("matrix", master="local[2]", log_dir=folder)
        order = list(sinks)
        with Script(app_of(list(sinks.values())), Home.at(folder / "home"), spark) as script:
            for number in range(given.rounds):
                if number:
                    order = order[1:] + order[:1]
                    script.upgrade_to(app_of([sinks[kind] for kind in order]))
                sent, points = crashed(script, sent)
                met += points
                print(number, dict(points), flush=True)  # noqa: T201
        found = {kind: judged(sink, sent) for kind, sink in sinks.items()}
        stop_session(spark)
    text = report(found, met, sent, given.rounds)
    print(text)  # noqa: T201
    if given.document:
        write_between_marks(given.document, "stores-spark", text)
    sys.exit(any(any(f) for f in found.values()))


if __name__ == "__main__":
    main()
