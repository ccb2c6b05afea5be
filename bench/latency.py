"""From one Kafka topic to another: how long a record takes in batches, continuously, in real time.

A record is stamped by its sender, and again when Spark sends its answer; the difference is
what is measured.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import millstream as ms
from millstream.spark.session import open_session, stop_session
from millstream.testing.kafka import Broker, Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).parent
TRIGGERS = ("default", "continuous 1 second", "realtime 5 seconds")
RATE, RECORDS, WARM_UP = 50, 1000, 200
WITHIN_S = 240


def app_of(servers: str, given: str, into: str, home: Path, trigger: str) -> ms.App:
    """The application: each record with the time it was sent, and a function of Spark's."""
    app = ms.App("latency", home=home, master="local[4]", trigger=trigger)

    @app.source(live=True)
    def records() -> ms.Kafka:
        return ms.Kafka(given, servers, format="raw")

    @app.serve(to=ms.Kafka(into, servers))
    def answered(records: DataFrame) -> DataFrame:
        text = F.upper(F.col("value").cast("string"))
        return records.select(text.alias("text"), F.unix_millis("timestamp").alias("sent"))

    return app


def measure(spark: SparkSession, broker: Broker, home: Path, trigger: str) -> list[int]:
    """Milliseconds that each record took, without those of the warm-up."""
    topics, name = Topics(spark, broker.servers), trigger.split(maxsplit=1)[0]
    given, into = f"{name}-in", f"{name}-out"
    topics.create(given)
    topics.create(into)
    app = app_of(broker.servers, given, into, home, trigger)
    app.start(fail_fast=True)
    try:
        topics.send(given, "first")
        answers(spark, broker, into, 1)
        began = time.monotonic()
        with topics.sender(given) as send:
            for number in range(RECORDS):
                time.sleep(max(0.0, began + number / RATE - time.monotonic()))
                send(f"record {number}")
        return answers(spark, broker, into, RECORDS + 1)[WARM_UP:]
    finally:
        app.stop()


def answers(spark: SparkSession, broker: Broker, topic: str, wanted: int) -> list[int]:
    """Wait for answers, and say how long each was under way."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        rows = reader.option("subscribe", topic).load().orderBy("offset")
        sent = F.get_json_object(F.col("value").cast("string"), "$.sent").cast("long")
        took = rows.select((F.unix_millis("timestamp") - sent).alias("ms")).collect()
        if len(took) >= wanted:
            return [row.ms for row in took]
        time.sleep(1)
    message = f"{topic}: {len(took)} of {wanted} answers"
    raise TimeoutError(message)


def main() -> None:
    report: dict[str, object] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "records a second": RATE,
        "records": RECORDS - WARM_UP,
        "load before": round(os.getloadavg()[0], 1),
    }
    medians: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary, Broker() as broker:
        place = Path(temporary)
        spark = open_session("latency", master="local[4]", log_dir=place)
        for trigger in TRIGGERS:
            took = measure(spark, broker, place / trigger.split()[0], trigger)
            medians[trigger] = statistics.median(took)
            report[trigger] = {
                "median, ms": medians[trigger],
                "99 of 100 below, ms": statistics.quantiles(took, n=100)[98],
                "median, of that in batches": round(medians[trigger] / medians["default"], 3),
            }
            print(trigger, report[trigger], flush=True)
        stop_session(spark)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "latency.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
