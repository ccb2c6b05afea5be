"""Queries without batches: what they give, and what is refused before anything starts."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.faults import raises

import millstream as ms
from millstream.checkpoint.health import examine
from millstream.errors import MillstreamError
from millstream.loading import load
from millstream.trial.rehearse import rehearse

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing.kafka import Broker, Topics

pytestmark = pytest.mark.spark

UNFIT = """\
import millstream as ms
from pyspark.sql import functions as F

app = ms.App("shop", trigger="{trigger}")


@app.source(live=True, event_time="at", watermark="1 minute")
def orders():
    return ms.Kafka("orders", schema="item STRING, n INT, at TIMESTAMP")


@app.view
def checked(orders):
    upper = F.udf(lambda text: text.upper(), "string")
    return orders.withColumn("item", upper("item"))


app.sql_view("summed", "SELECT item, count(*) AS n FROM orders GROUP BY item")


def served(function):
    return app.serve(to=ms.Console())(function)


@served
def in_python(checked):
    return checked


@served
def counted(orders):
    sold = orders.where("n > 0")
    return sold.groupBy("item").agg(
        F.sum("n").alias("n")
    )


@served
def in_sql(summed):
    return summed


@served
def once(orders):
    return ms.dedup(orders, ["item", "at"])


@served
def matched(orders):
    others = orders.select("item", F.col("at").alias("then"))
    return orders.join(others, "item")


@served
def looked_up(orders):
    prices = orders.sparkSession.createDataFrame([("tea", 3)], "item STRING, price INT")
    return orders.join(prices.hint("merge"), "item")


@served
def spread(orders):
    return orders.repartition(2)


@served
def split(orders):
    return orders.select(F.explode(F.split("item", " ")).alias("word"))


@served
def stamped(orders):
    return orders.select("item", F.current_timestamp().alias("now"))


@served
def right(orders):
    return orders.where("n > 0").select(F.upper("item").alias("item"))
"""
IN_BATCHES = "or give it trigger='default' or an interval"
READER = "leave it to the reader of the topic"
BUILT_IN = "use built-in functions (pyspark.sql.functions)"
IN_REAL_TIME = "use trigger='realtime'"
BROADCAST = "join on equal columns with F.broadcast(…) of the reference data"


def line(text: str) -> int:
    return next(n for n, written in enumerate(UNFIT.splitlines(), 1) if text in written)


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (
            "realtime",
            {
                ("in_python", "a function in Python", BUILT_IN, "withColumn"),
                ("counted", "an aggregation", READER, "return sold"),
                ("in_sql", "an aggregation", READER, "sql_view"),
                ("once", "dropDuplicates", READER, "ms.dedup"),
                ("matched", "a join of two streams", READER, "join(others"),
                ("looked_up", "a join without broadcast", BROADCAST, "join(prices"),
                ("spread", "a repartitioning", "leave it out", "repartition"),
            },
        ),
        (
            "continuous 2 seconds",
            {
                ("in_python", "a function in Python", BUILT_IN, "withColumn"),
                ("counted", "an aggregation", READER, "return sold"),
                ("in_sql", "an aggregation", READER, "sql_view"),
                ("once", "dropDuplicates", READER, "ms.dedup"),
                ("matched", "a join", f"{IN_REAL_TIME}, which has broadcast joins", "join(others"),
                ("looked_up", "a join", f"{IN_REAL_TIME}, which has broadcast joins", "join(pri"),
                ("spread", "a repartitioning", "leave it out", "repartition"),
                ("split", "explode", IN_REAL_TIME, "explode"),
                ("stamped", "the current time", "take the time of the record", "current_times"),
            },
        ),
    ],
)
def test_every_operator_that_cannot_run_is_named_with_its_line_and_what_would(
    spark: SparkSession, tmp_path: Path, trigger: str, expected: set[tuple[str, str, str, str]]
) -> None:
    file = tmp_path / "app.py"
    file.write_text(UNFIT.replace("{trigger}", trigger))
    app = load(str(file))

    found = rehearse(app.graph, spark)

    assert app.faults == ()
    assert {str(error) for error in found} == {
        f"[TRIGGER_OPERATOR] serve {serve!r} has trigger={trigger!r}, in which {what} cannot run\n"
        f"  at:  {file}:{line(text)}\n"
        f"  fix: {instead}, {IN_BATCHES}"
        for serve, what, instead, text in expected
    }


def app_of(broker: Broker, home: Path, trigger: str, given: str, into: str) -> ms.App:
    app = ms.App("shop", home=home, trigger=trigger)

    @app.source(live=True)
    def orders() -> ms.Kafka:
        return ms.Kafka(given, broker.servers, schema="n INT, item STRING")

    @app.view
    def upper(orders: DataFrame) -> DataFrame:
        return orders.select("n", F.upper("item").alias("item"))

    @app.serve(to=ms.Kafka(into, broker.servers, key="n"))
    def out(upper: DataFrame) -> DataFrame:
        if not trigger.startswith("realtime"):
            return upper
        prices = upper.sparkSession.createDataFrame([("TEA", 3)], "item STRING, price INT")
        return upper.join(F.broadcast(prices), "item")

    return app


def records(spark: SparkSession, broker: Broker, topic: str) -> list[tuple[str, Any]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    rows = reader.option("subscribe", topic).load().selectExpr("string(key)", "string(value)")
    return [(row.key, json.loads(row.value)) for row in rows.collect()]


def sent(topics: Topics, topic: str, numbers: range) -> None:
    topics.send(topic, *(json.dumps({"n": n, "item": "tea"}) for n in numbers))


def wait_for(
    spark: SparkSession, broker: Broker, topic: str, numbers: range
) -> list[tuple[str, Any]]:
    until = time.monotonic() + 120
    while True:
        found = records(spark, broker, topic)
        if {row["n"] for _, row in found} >= set(numbers):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.5)


@pytest.mark.kafka
@pytest.mark.parametrize("trigger", ["realtime 2 seconds", "continuous 1 second"])
def test_without_batches_every_record_arrives_at_least_once_though_the_query_is_cut_short(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path, trigger: str
) -> None:
    kind = trigger.split(maxsplit=1)[0]
    given, into = f"{kind}-in", f"{kind}-out"
    topics.create(given)
    topics.create(into)
    app = app_of(broker, tmp_path, trigger, given, into)
    sent(topics, given, range(10))

    app.start(fail_fast=True)
    wait_for(spark, broker, into, range(10))
    sent(topics, given, range(10, 30))
    app.stop()
    sent(topics, given, range(30, 40))
    app.start(fail_fast=True)
    wait_for(spark, broker, into, range(40))
    spark.sparkContext.cancelAllJobs()
    time.sleep(2)
    with suppress(MillstreamError):
        app.stop()
    sent(topics, given, range(40, 50))
    if kind == "realtime":
        topics.send(given, "nonsense")
    app.start(fail_fast=True)
    found = wait_for(spark, broker, into, range(50))
    app.stop()

    assert [c.damage for c in examine(app.home()).values()] == [()]
    price = {"price": 3} if kind == "realtime" else {}
    assert {row["n"] for _, row in found} == set(range(50))
    assert all((k, r) == (str(r["n"]), {"n": r["n"], "item": "TEA", **price}) for k, r in found)


@pytest.mark.kafka
def test_tasks_that_would_wait_for_each_other_are_refused(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("wide", partitions=3)
    topics.create("narrow")

    with raises("TASK_SLOTS") as refused:
        app_of(broker, tmp_path, "realtime", "wide", "narrow").run()

    assert str(refused.value) == (
        "[TASK_SLOTS] 'out' and what else runs want 3 tasks at a time, and "
        f"{spark.sparkContext.master} runs 2\n"
        "  fix: give it 3 task slots or more, such as --master 'local[3]': without batches each"
        " partition of a topic keeps one busy, and the others would wait"
    )


def test_a_trigger_of_the_command_line_is_checked_against_the_same_rules(tmp_path: Path) -> None:
    app = ms.App("shop", home=tmp_path)

    @app.source()
    def orders() -> ms.Memory:
        return ms.Memory("n INT")

    with raises("TRIGGER_TARGET"):
        app.run(trigger="realtime")
