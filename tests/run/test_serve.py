"""Answers sent to Kafka by Spark's own sink, from batch to batch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from tests.faults import raises

import millstream as ms

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing.kafka import Broker, Topics

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_an_answer_is_sent_to_kafka_with_its_key_and_a_restart_goes_on_behind_it(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("asked")
    topics.create("answered")
    topics.send("asked", '{"n": 1}', '{"n": 2}', "nonsense")
    app = ms.App("shop", home=tmp_path)

    @app.source(live=True)
    def numbers() -> ms.Kafka:
        return ms.Kafka("asked", broker.servers, schema="n INT")

    @app.serve(to=ms.Kafka("answered", broker.servers, key="n"))
    def doubled(numbers: DataFrame) -> DataFrame:
        return numbers.select("n", (F.col("n") * 2).alias("twice"))

    app.run(once=True, fail_fast=True)
    topics.send("asked", '{"n": 3}')
    app.run(once=True, fail_fast=True)

    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    records = reader.option("subscribe", "answered").load().orderBy("offset")
    assert [(bytes(r.key), bytes(r.value)) for r in records.collect()] == [
        (b"%d" % n, b'{"n":%d,"twice":%d}' % (n, 2 * n)) for n in (1, 2, 3)
    ]


def test_a_topic_to_write_to_that_does_not_exist_is_reported_before_anything_starts(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("there")
    app = ms.App("shop", home=tmp_path)

    @app.source(live=True)
    def lines() -> ms.Kafka:
        return ms.Kafka("there", broker.servers)

    @app.serve(to=ms.Kafka("ther", broker.servers))
    def copied(lines: DataFrame) -> DataFrame:
        return lines

    with raises("TOPIC_MISSING") as refused:
        app.run(once=True)

    assert str(refused.value) == (
        f"[TOPIC_MISSING] serve 'copied': topic 'ther' does not exist at {broker.servers}\n"
        f"  at:  {app.graph.datasets['copied'].at}\n"
        "  fix: did you mean 'there'? create the topic, or correct its name"
    )


def test_rows_are_printed_where_the_app_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = ms.App("shop", home=tmp_path)
    rows = ms.Memory("n INT")
    rows.add({"n": 4711})
    app.source(name="numbers", live=True)(lambda: rows)
    app.serve(to=ms.Console(), name="shown")(lambda numbers: numbers)

    app.run(once=True, fail_fast=True)

    printed, until = "", time.monotonic() + 60
    while "|4711|\n+----+\n" not in printed and time.monotonic() < until:
        time.sleep(0.1)
        printed += capsys.readouterr().err
    assert "Batch: 0\n" in printed
    assert "+----+\n|n   |\n+----+\n|4711|\n+----+\n" in printed
