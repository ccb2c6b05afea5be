from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import functions as F
from tests.apps import READING, reading, run, timed

import millstream as ms
from millstream.lake.home import Home
from millstream.loading import load
from millstream.systems.memory.source import Memory
from millstream.trial.rehearse import rehearse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from millstream.app import App

pytestmark = pytest.mark.spark


def test_a_sound_app_is_rehearsed_without_faults(spark: SparkSession) -> None:
    app = timed(Memory(READING), expect={"speed is positive": "speed > 0"})
    app.sql_view("fast", "SELECT * FROM readings WHERE speed > 100")
    query = "SELECT window, count(*) AS n FROM fast GROUP BY window(at, '1 minute')"
    app.sql("per_minute", query)
    app.sql("latest", query, mode="update", key=["window"])
    app.sql("most", "SELECT max(n) AS n FROM latest", mode="complete")

    assert (app.faults, rehearse(app.graph, spark)) == ((), ())


def wrong(app: App) -> dict[str, int]:
    """Declare a handful of faults; give the line of each."""

    @app.table()
    def misspelt(readings: DataFrame) -> DataFrame:
        return readings.select("sped")

    @app.table()
    def unread(misspelt: DataFrame) -> DataFrame:
        return misspelt

    @app.table()
    def never_done(readings: DataFrame) -> DataFrame:
        return readings.groupBy("id").agg(F.max("speed"))

    @app.table(mode="update", key=["vehicle"])
    def keyless(readings: DataFrame) -> DataFrame:
        return readings.groupBy("id").count()

    @app.table(expect={"is fast": "speed >"})
    def ruleless(readings: DataFrame) -> DataFrame:
        return readings

    @app.table(expect={"is fast": "speed + 1"})
    def wordless(readings: DataFrame) -> DataFrame:
        return readings

    @app.table()
    def taken(readings: DataFrame) -> DataFrame:
        return readings.withColumn("_rules", F.lit(1))

    found = {f.__name__: f.__code__.co_firstlineno for f in (never_done, keyless, ruleless)}
    return found | {
        "misspelt": misspelt.__code__.co_firstlineno + 2,
        "wordless": wordless.__code__.co_firstlineno,
        "taken": taken.__code__.co_firstlineno,
    }


def test_all_that_spark_would_refuse_is_found_at_once_with_its_line(spark: SparkSession) -> None:
    app = timed(Memory(READING))
    lines = wrong(app)

    found = rehearse(app.graph, spark)

    assert {(error.code, error.at.line) for error in found if error.at} == {
        ("QUERY_REFUSED", lines["misspelt"]),
        ("QUERY_REFUSED", lines["never_done"]),
        ("COLUMN_MISSING", lines["keyless"]),
        ("RULE_REFUSED", lines["ruleless"]),
        ("RULE_REFUSED", lines["wordless"]),
        ("COLUMN_RESERVED", lines["taken"]),
    }


def test_a_rule_that_is_no_condition_is_reported_in_full(spark: SparkSession) -> None:
    app = timed(Memory(READING))
    app.sql("fast", "SELECT * FROM readings", expect={"is fast": "speed + 1"})

    [error] = rehearse(app.graph, spark)

    assert str(error) == (
        "[RULE_REFUSED] rule 'is fast' of 'fast' is not a condition on its columns: it is double\n"
        f"  at:  {app.graph.tables[0].at}\n"
        '  fix: write a SQL condition such as "speed BETWEEN 0 AND 250"'
    )


def test_what_spark_refuses_in_a_sql_file_is_found_at_its_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    rate = '-- source: rate\n-- expect "is odd": value %\n'
    misspelt = "-- table:\n\nSELECT timestamp,\n  valu\nFROM ticks"
    unknown = "\n-- no header\nSELECT\n  no_such(value) AS n FROM ticks"
    keyless = "-- table: update\n-- key: n\n\nSELECT value FROM ticks"
    texts = {"ticks": "-- source: rate\n", "odd": rate, "misspelt": misspelt, "keyless": keyless}
    for name, text in (texts | {"v": unknown, "t": "-- table:\nSELECT * FROM v"}).items():
        Path(f"shop/{name}.sql").write_text(text)

    found = rehearse(load("shop").graph, spark)

    assert {(fault.code, str(fault.at)) for fault in found} == {
        ("RULE_REFUSED", "shop/odd.sql:2"),
        ("QUERY_REFUSED", "shop/misspelt.sql:4"),
        ("QUERY_REFUSED", "shop/v.sql:4"),
        ("COLUMN_MISSING", "shop/keyless.sql:2"),
    }


def test_state_that_nothing_bounds_is_warned_of_at_its_line(spark: SparkSession) -> None:
    app = timed(Memory(READING))

    @app.source()
    def untimed() -> object:
        return Memory(READING)

    @app.table(mode="update", key=["id"])
    def growing(untimed: DataFrame) -> DataFrame:
        some = untimed.where("speed > 1")
        return some.groupBy("id").count()

    @app.table()
    def seen(readings: DataFrame) -> DataFrame:
        return readings.dropDuplicates(["id"])

    @app.table()
    def paired(readings: DataFrame, untimed: DataFrame) -> DataFrame:
        other = untimed.select(F.col("id").alias("other"))
        return readings.join(other, F.col("id") == F.col("other"))

    @app.table(mode="update", key=["day"])
    def daily(readings: DataFrame) -> DataFrame:
        return readings.groupBy(F.to_date("at").alias("day")).count()

    @app.table()
    def bounded(readings: DataFrame) -> DataFrame:
        left, right = readings.alias("a"), readings.alias("b")
        near = "a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE"
        return left.join(right, F.expr(near)).select("a.id")

    @app.table(mode="complete")
    def whole(readings: DataFrame) -> DataFrame:
        return readings.agg(F.count("*").alias("n"))

    found = rehearse(app.graph, spark)

    lines = {f: f.__code__.co_firstlineno for f in (growing, seen, paired, daily)}
    assert {(e.code, e.is_warning) for e in found} == {("UNBOUNDED_STATE", True)}
    assert {(e.what.split("'")[1], e.at.line if e.at else 0) for e in found} == {
        ("growing", lines[growing] + 3),
        ("seen", lines[seen] + 2),
        ("paired", lines[paired] + 3),
        ("daily", lines[daily] + 2),
    }


@ms.stateful(key="id", state="n BIGINT", emits="id BIGINT, n BIGINT")
def presence(id: int, rows: Any, state: Any, timer: Any) -> Iterator[tuple[int, int]]:  # noqa: A002
    state.n = (state.n or 0) + len(rows)
    yield id, state.n


def by_way_of(rows: DataFrame) -> DataFrame:
    return presence(rows)


def test_state_that_an_operator_keeps_for_ever_is_warned_of_whoever_calls_it(
    spark: SparkSession,
) -> None:
    app = timed(Memory(READING))

    @app.table()
    def hidden(readings: DataFrame) -> DataFrame:
        return by_way_of(readings)

    @app.table()
    def plain(readings: DataFrame) -> DataFrame:
        return readings.transform(by_way_of)

    @app.table()
    def latest(readings: DataFrame) -> DataFrame:
        return ms.join_as_of(readings, readings.select("id", "at"), on="id")

    @app.table()
    def recent(readings: DataFrame) -> DataFrame:
        return ms.join_as_of(readings, readings.select("id", "at"), on="id", within="1 hour")

    found = rehearse(app.graph, spark)

    assert [(e.code, e.what.split("'")[-2]) for e in found] == [
        ("STATE_KEPT_FOREVER", "hidden"),
        ("STATE_KEPT_FOREVER", "plain"),
        ("UNBOUNDED_STATE", "latest"),
    ]
    assert found[2].at
    assert found[2].at.line == inspect.getsourcelines(latest)[1] + 2


def test_a_key_that_most_rows_have_is_warned_of_where_rows_are_moved(
    spark: SparkSession, tmp_path: Path
) -> None:
    app, home = timed(Memory(READING)), Home.at(tmp_path / "home")

    @app.table(mode="update", key=["id"])
    def counted(readings: DataFrame) -> DataFrame:
        return readings.groupBy("id").agg(F.sum("speed").alias("speed"))

    @app.table(mode="update", key=["id"])
    def moved(readings: DataFrame) -> DataFrame:
        some = readings.where("speed > 1")
        return some.groupBy("id").agg(F.collect_set("speed").alias("speeds"))

    @app.table()
    def windowed(readings: DataFrame) -> DataFrame:
        by_minute = readings.groupBy("id", F.window("at", "1 minute"))
        return by_minute.agg(F.collect_set("speed").alias("speeds"))

    @app.table(mode="update", key=["fast"])
    def derived(readings: DataFrame) -> DataFrame:
        some = readings.withColumn("fast", F.col("speed") > 100)
        return some.groupBy("fast").agg(F.collect_set("id").alias("ids"))

    def warned() -> list[str]:
        return [str(e) for e in rehearse(app.graph, spark, home) if e.code == "SKEWED_KEY"]

    assert warned() == []
    for file in range(2):
        ids = [7 if n % 10 else n + file for n in range(6_000)]
        landed = pa.table({"id": ids, "speed": [1.0] * 6_000, "_verdict": ["ok"] * 6_000})
        path = str(home.table("readings"))
        write_deltalake(path, landed, mode="append", partition_by=["_verdict"])

    warnings = warned()
    for warning, table in zip(warnings, (moved, windowed), strict=True):
        line = inspect.getsourcelines(table)[1] + 3
        assert "90% of the last rows of 'readings' have id = 7" in warning
        assert f"test_rehearse.py:{line}" in warning


def test_what_spark_refuses_only_once_a_query_has_a_watermark_is_refused_by_check(
    spark: SparkSession,
) -> None:
    app = timed(Memory(READING))

    @app.table()
    def redefined(readings: DataFrame) -> DataFrame:
        later = readings.withColumn("then", F.expr("at + INTERVAL 10 SECONDS"))
        return (
            later.withWatermark("then", "2 minutes").groupBy(F.window("then", "1 minute")).count()
        )

    @app.table()
    def two_times(readings: DataFrame) -> DataFrame:
        left = readings.withColumn("window", F.window("at", "1 minute"))
        right = left.select("id", "window", F.col("at").alias("other_at"))
        return ms.join_within(left, right, on=["id", "window"], within="5 minutes")

    found = {error.what.split("'")[1]: error for error in rehearse(app.graph, spark)}

    assert {name: error.code for name, error in found.items()} == {
        "redefined": "QUERY_REFUSED",
        "two_times": "QUERY_REFUSED",
    }
    assert "remove this withWatermark" in found["redefined"].fix
    assert "drop all but one of these columns" in found["two_times"].fix


def numbered(kind: str, state: str, **more: int) -> App:
    """Make an app with a table whose speeds have a type, and a function that keeps a state."""
    connector = Memory(READING)
    connector.add(reading(1, "10:00:00"))
    app = timed(connector)

    @ms.stateful(key="id", state=state, emits="id BIGINT", ttl="1 day")
    def remember(key: int, rows: Any, state: Any, timer: ms.Timer) -> None: ...

    @app.table()
    def speeds(readings: DataFrame) -> DataFrame:
        added = {name: F.lit(value) for name, value in more.items()}
        return readings.select("id", F.col("speed").cast(kind)).withColumns(added)

    @app.table()
    def remembered(readings: DataFrame) -> DataFrame:
        return remember(readings)

    return app


def test_check_finds_what_no_longer_fits_the_tables_and_checkpoints_of_the_home(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = Home.at(tmp_path / "home")
    run(numbered("double", "n INT"), home.path)

    assert rehearse(numbered("double", "n INT").graph, spark, home) == ()
    changed = numbered("string", "n BIGINT", also=1)
    found = {error.code: str(error) for error in rehearse(changed.graph, spark, home)}
    assert found.keys() == {"SCHEMA_CHANGED", "COLUMN_ADDED", "STATE_CHANGED"}
    assert "'speed'" in found["SCHEMA_CHANGED"]
    assert "test_rehearse.py" in found["SCHEMA_CHANGED"]
