from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from pyspark.sql import functions as F
from tests.apps import READING, reading, rows, run, timed
from tests.faults import raises

from millstream.lake.home import Home
from millstream.operators import dedup
from millstream.systems.memory.source import Memory
from millstream.trial.batch import BatchTable, Comparison, compare, run_batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.app import App

pytestmark = pytest.mark.spark


def fleet(source: Memory) -> App:
    app = timed(source)

    @app.table(expect={"speed is plausible": "speed BETWEEN 0 AND 250"})
    def clean(readings: DataFrame) -> DataFrame:
        return dedup(readings, ["id", "at"])

    @app.table(mode="update", key=["id", "window"])
    def per_minute(clean: DataFrame) -> DataFrame:
        speed = F.avg("speed").alias("speed")
        return clean.groupBy("id", F.window("at", "1 minute")).agg(speed)

    @app.table()
    def per_hour(clean: DataFrame) -> DataFrame:
        return clean.groupBy(F.window("at", "1 hour")).agg(F.count("*").alias("n"))

    app.sql("busy", "SELECT window.start AS hour, n FROM per_hour WHERE n > 1")
    app.sql("best", "SELECT id, max(speed) AS speed FROM per_minute GROUP BY id", mode="complete")
    return app


def test_the_stream_gives_the_batch_answer_and_what_it_still_holds_back_is_not_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    app = fleet(source)
    home, fresh = Home.at(tmp_path / "home"), Home.at(tmp_path / "batch")
    source.add(reading(1, "12:00:00", 10.0), reading(1, "12:00:00", 10.0), "nonsense")
    source.add(reading(2, "12:00:30", 999.0), reading(1, "12:00:40", 20.0))
    run(app, home.path)
    source.add(reading(1, "13:30:00", 5.1), reading(2, "11:00:00"))
    source.add(reading(2, "13:31:00", 0.2), reading(3, "13:25:00", 0.1))
    run(app, home.path)

    computed = run_batch(app.graph, spark, home, fresh)
    compared = compare(app.graph, spark, home, fresh)

    assert {table.name: table.rows for table in computed} == {
        "clean": 5,
        "per_minute": 4,
        "per_hour": 2,
        "busy": 2,
        "best": 3,
    }
    assert computed[0] == BatchTable("clean", rows=5, quarantined=1)
    assert {c.name: (c.equal, c.missing, c.extra, c.waiting) for c in compared} == {
        "clean": (5, 0, 0, 0),
        "clean__quarantine": (1, 0, 0, 0),
        "per_minute": (4, 0, 0, 0),
        "per_hour": (1, 0, 0, 1),
        "busy": (1, 0, 0, 0),
        "best": (3, 0, 0, 0),
    }
    assert all(comparison.is_equal for comparison in compared)
    assert rows(fresh.path, "clean__quarantine", "id") == [(2,)]


def test_a_query_that_depends_on_more_than_its_input_is_found_different(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), reading(2, "12:00:00"))
    app = timed(source)
    app.sql("drawn", "SELECT id, rand() AS lot FROM readings")
    home, fresh = Home.at(tmp_path / "home"), Home.at(tmp_path / "batch")
    run(app, home.path)

    run_batch(app.graph, spark, home, fresh)
    [compared] = compare(app.graph, spark, home, fresh)

    assert compared == Comparison("drawn", equal=0, missing=2, extra=2, waiting=0)
    assert not compared.is_equal


def test_rows_the_stream_lost_or_has_twice_are_found(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(*(reading(n, "12:00:00") for n in range(4)))
    app = timed(source)
    app.sql("copy", "SELECT id FROM readings")
    home, fresh = Home.at(tmp_path / "home"), Home.at(tmp_path / "batch")
    run(app, home.path)
    path = str(home.table("copy"))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (3), (3)")

    run_batch(app.graph, spark, home, fresh)
    [compared] = compare(app.graph, spark, home, fresh)

    assert compared == Comparison("copy", equal=3, missing=1, extra=2, waiting=0)


@pytest.mark.parametrize("mode", ["append", "update"])
def test_rows_the_quarantine_lost_or_has_twice_are_found(
    mode: Literal["append", "update"], spark: SparkSession, tmp_path: Path
) -> None:
    source, key = Memory(READING), ["id"] if mode == "update" else []
    source.add(*(reading(n, "12:00:00", float(n)) for n in range(6)))
    app = timed(source)
    app.sql("slow", "SELECT id FROM readings", mode=mode, key=key, expect={"is slow": "id < 3"})
    home, fresh = Home.at(tmp_path / "home"), Home.at(tmp_path / "batch")
    run(app, home.path)
    run_batch(app.graph, spark, home, fresh)
    assert all(c.is_equal for c in compare(app.graph, spark, home, fresh))
    path = str(home.quarantine("slow"))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")
    rules = "array('is slow')"
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (3, {rules}), (2, {rules})")

    _, compared = compare(app.graph, spark, home, fresh)

    extra = 2 if mode == "append" else 0
    assert compared == Comparison("slow__quarantine", equal=2, missing=1, extra=extra, waiting=0)


def test_a_batch_needs_something_landed(spark: SparkSession, tmp_path: Path) -> None:
    home, fresh = Home.at(tmp_path / "home"), Home.at(tmp_path / "batch")
    source = Memory(READING)
    landed, live = timed(source), timed(source, live=True)

    with raises("NOTHING_LANDED"):
        run_batch(landed.graph, spark, home, fresh)
    with raises("LIVE_IN_BATCH") as caught:
        run_batch(live.graph, spark, home, fresh)

    assert str(caught.value) == (
        "[LIVE_IN_BATCH] source 'readings' is live, so nothing of it is landed "
        "to run a batch over\n"
        f"  at:  {live.graph.sources[0].at}\n"
        "  fix: leave live=True out to land it"
    )
