from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from tests.apps import READING, app_of, moment, reading, rows, run, timed

import millstream as ms
from millstream.app import App
from millstream.operators import dedup
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_rows_that_landing_accepts_are_never_dropped_behind_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    arrivals = [
        [reading(1, "12:00:00")],
        [reading(2, "11:50:00"), reading(3, "11:50:00.000001"), reading(4, "11:49:59.999999")],
        [reading(5, "11:50:00"), reading(2, "11:50:00"), reading(6, "12:10:00")],
        [reading(7, "12:00:00"), reading(8, "12:30:00.001")],
    ]
    app = timed(source)

    @app.table()
    def once(readings: DataFrame) -> DataFrame:
        return dedup(readings, ["id", "at"])

    @app.table()
    def per_minute(once: DataFrame) -> DataFrame:
        return once.groupBy(F.window("at", "10 minutes").alias("w")).agg(F.count("*").alias("n"))

    for batch in arrivals:
        source.add(*batch)
        run(app, tmp_path)

    assert rows(tmp_path, "once", "id") == [(1,), (2,), (3,), (5,), (6,), (7,), (8,)]
    assert rows(tmp_path, "per_minute", "w", "n") == [
        ((moment("11:50:00"), moment("12:00:00")), 3),
        ((moment("12:00:00"), moment("12:10:00")), 2),
        ((moment("12:10:00"), moment("12:20:00")), 1),
    ]


def test_every_cut_of_arrival_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    app = timed(source)

    @app.table()
    def once(readings: DataFrame) -> DataFrame:
        return dedup(readings, ["id", "at"])

    source.add(reading(1, "12:00:00"), reading(1, "12:00:00"))
    run(app, tmp_path)
    source.add(reading(2, "11:50:00"), reading(1, "12:00:00"))
    source.add(reading(2, "11:50:00"), reading(1, "12:00:00"))
    run(app, tmp_path)

    assert rows(tmp_path, "once", "id", "at") == [
        (1, moment("12:00:00")),
        (2, moment("11:50:00")),
    ]


def test_a_slow_source_is_not_late_because_of_a_fast_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    fast, slow = Memory(READING), Memory(READING)
    app = App("fleet")
    app.source(name="fast", event_time="at", watermark="10 minutes")(lambda: fast)
    app.source(name="slow", event_time="at", watermark="10 minutes")(lambda: slow)
    app.sql("both", "SELECT * FROM fast UNION ALL SELECT * FROM slow")

    @app.table()
    def once(both: DataFrame) -> DataFrame:
        return dedup(both, ["id", "at"])

    fast.add(reading(1, "18:00:00"))
    slow.add(reading(2, "12:00:00"))
    run(app, tmp_path)
    slow.add(reading(3, "12:05:00"))
    run(app, tmp_path)

    assert rows(tmp_path, "once", "id") == [(1,), (2,), (3,)]


def test_without_event_time_a_key_is_remembered(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    app = app_of(source)
    app.table(name="once")(lambda readings: dedup(readings, ["id"]).select("id"))
    source.add(reading(1, "12:00:00"), {"id": None})
    run(app, tmp_path)

    source.add(reading(1, "18:00:00"), {"id": None}, reading(2, "18:00:00"))
    run(app, tmp_path)

    assert rows(tmp_path, "once") == [(1,), (2,), (None,)]


def test_keys_that_spark_takes_as_equal_are_one_key(spark: SparkSession) -> None:
    columns = "x DOUBLE, f FLOAT, s STRUCT<x: DOUBLE, f: ARRAY<FLOAT>>, at TIMESTAMP, n INT"
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    data = [
        (sign * 0.0, sign * 0.0, (sign * 0.0, [sign * 0.0]), at + timedelta(seconds=n), n)
        for n, sign in enumerate((1, -1))
    ]
    seen = spark.createDataFrame([*data, (None, 0.5, None, at, 2)], columns)
    keys = ["x", "f", "s"]
    both = ms.pattern(key=keys, within="1 hour").step("one", "n = 0").step("other", "n = 1")
    joined = ms.join_as_of(seen.where("n = 1"), seen.where("n = 0"), on=keys)

    once = ms.dedup(seen, keys, within="1 hour").collect()

    assert sorted(row.n for row in once) == [0, 2]
    assert [str(row.x) for row in once if row.n == 0] == ["0.0"]
    assert [row.n_right for row in joined.collect()] == [0]
    assert ms.match(seen, both).count() == 1
