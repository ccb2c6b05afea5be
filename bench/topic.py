"""Rows into a Kafka topic: exactly once by ours, at least once by Spark's own sink."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import functions as F

import millstream as ms
from bench.stores import KEYS, batch
from millstream.checkpoint import CheckpointLog
from millstream.errors import Location
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.model.dataset import Serve
from millstream.model.trigger import Trigger
from millstream.run.query import StreamOptions, StreamRun
from millstream.serve.serve_sink import ServeSink
from millstream.spark.session import open_session, stop_session
from millstream.testing.kafka import Broker, Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).parent
FILES, FILES_PER_BATCH, ROUNDS, PARTITIONS = 10, 2, 3, 2
SCHEMA = "page STRING, n BIGINT, mean DOUBLE, last TIMESTAMP"


def rows_of(spark: SparkSession, files: Path, per_batch: int = FILES_PER_BATCH) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(str(files))


def write_rows(folder: Path) -> None:
    """Write a million rows, as many files as batches; a file has each key once."""
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(batch(number), folder / f"{number}.parquet")


def by_spark(frame: DataFrame, servers: str, topic: str, folder: Path) -> None:
    records = frame.select(F.col("page").alias("key"), F.to_json(F.struct("*")).alias("value"))
    writer = records.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", topic).option("checkpointLocation", str(folder))
    writer.trigger(availableNow=True).start().awaitTermination()


def ours(frame: DataFrame, servers: str, topic: str, folder: Path) -> None:
    serve_all(frame, ms.Kafka(topic, servers, key="page").in_batches(), folder)


def serve_all(frame: DataFrame, sink: Any, folder: Path) -> None:
    """Serve a stream to a store, to its end, as a running app does."""
    home = Home.at(folder)
    home.prepare("bench", sources=[], serves=["out"])
    serve = Serve("out", (), lambda: frame, Location("bench", 1), (sink,))
    log, lease = CheckpointLog(home.checkpoint("out")), Lease.acquire(home)
    served = ServeSink(serve, "bench", frame, log, lease, lambda _: None)
    run = StreamRun(frame, served, log, StreamOptions("append", lambda _: None))
    run.start(Trigger("once"))
    run.drain()
    served.close()
    lease.release()


def main() -> None:
    taken: dict[str, list[float]] = {"ours, exactly once": [], "Spark's, at least once": []}
    with Broker() as broker, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_rows(folder / "rows")
        spark = open_session("bench", master="local[2]", log_dir=folder)
        topics = Topics(spark, broker.servers)
        for number in range(ROUNDS + 1):
            for name, send in zip(taken, (ours, by_spark), strict=True):
                topic = f"{send.__name__}-{number}"
                topics.create(topic, partitions=PARTITIONS)
                frame, began = rows_of(spark, folder / "rows"), time.monotonic()
                send(frame, broker.servers, topic, folder / topic)
                if number:  # the first round warms up
                    taken[name].append(time.monotonic() - began)
                print(name, round(time.monotonic() - began, 2), flush=True)
        stop_session(spark)
    rates = {name: FILES * KEYS / statistics.median(times) for name, times in taken.items()}
    report: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    report |= {"rows": FILES * KEYS, "rows a batch": FILES_PER_BATCH * KEYS}
    report |= {f"{name}, rows/s": round(rate) for name, rate in rates.items()}
    first, second = rates.values()
    report["ratio"] = round(first / second, 2)
    print(report)
    (HERE / "results" / "topic.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
