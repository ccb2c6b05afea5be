"""The refusals of Spark that people meet most often: each with the line, and a fix that works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, Window, functions as F

import millstream as ms
from millstream.systems.memory.source import Memory
from millstream.trial.rehearse import rehearse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from millstream.app import App

    Query = Callable[..., Any]

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, at TIMESTAMP, speed DOUBLE, name STRING, place STRUCT<x: INT>"
BY_ID = {"mode": "update", "key": ["id"]}


def shop() -> App:
    """Declare two sources with an event time, and two without."""
    app = ms.App("refusals")
    for name in ("timed", "second"):
        timed = app.source(name=name, event_time="at", watermark="10 minutes")
        timed(lambda: Memory(COLUMNS))
    for name in ("plain", "other"):
        app.source(name=name)(lambda: Memory(COLUMNS))
    app.sql(
        "latest",
        "SELECT id, name, max(speed) AS speed FROM timed GROUP BY id, name",
        mode="update",
        key=["id", "name"],
    )
    return app


def static(rows: DataFrame) -> DataFrame:
    return rows.sparkSession.createDataFrame([(1, "a")], "id BIGINT, word STRING")


def per_minute(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.window("at", "1 minute"), "id").count()


def passed_on(_key: Any, pandas: Any, _state: Any) -> Any:
    return pandas


def with_state(rows: DataFrame, mode: str) -> Any:
    grouped: Any = rows.groupBy("id")
    return grouped.applyInPandasWithState(passed_on, "id BIGINT", "n INT", mode, "NoTimeout")


def ending(name: str) -> Query:
    """Return a function that does what ends a query, and does not only describe it."""

    def query(timed: DataFrame) -> DataFrame:
        method = getattr(timed, name)
        if callable(method):
            method()
        return timed

    return query


REFUSED: dict[str, tuple[Query, dict[str, Any], str]] = {
    "aggregate_in_append": (
        lambda plain: plain.groupBy("id").count(),
        {},
        "mode='update', key=[…]",
    ),
    "row_number": (
        lambda timed: timed.withColumn("n", F.row_number().over(Window.orderBy("at"))),
        {},
        "use ms.top_k(…)",
    ),
    "count_distinct": (
        lambda timed: timed.groupBy("id").agg(F.countDistinct("speed")),
        BY_ID,
        "use F.approx_count_distinct(…)",
    ),
    "sorted_rows": (lambda timed: timed.orderBy("at"), {}, "millstream query … ORDER BY"),
    "limited": (lambda timed: timed.groupBy("id").count().limit(3), BY_ID, "use ms.top_k(…)"),
    "skipping": (lambda timed: timed.offset(3), {}, "millstream query … LIMIT"),
    "sampled": (lambda timed: timed.sample(0.1), {}, "choose by a column"),
    "twice_aggregated": (
        lambda timed: per_minute(timed).groupBy("id").agg(F.max("count")),
        BY_ID,
        "make the first of the two a table of its own",
    ),
    "left_join": (lambda plain, other: plain.join(other, "id", "left"), {}, "use ms.join_within("),
    "full_join": (lambda plain, other: plain.join(other, "id", "full"), {}, "use ms.join_within("),
    "anti_join": (lambda plain, other: plain.join(other, "id", "anti"), {}, "ms.absent(…)"),
    "right_of_static": (
        lambda plain: plain.join(static(plain), "id", "right"),
        {},
        "stream.join(static, on=…, how='left')",
    ),
    "left_of_static": (
        lambda plain: static(plain).join(plain, "id", "left"),
        {},
        "stream.join(static, on=…, how='left')",
    ),
    "full_with_static": (
        lambda plain: static(plain).join(plain, "id", "full"),
        {},
        "stream.join(static, on=…, how='left')",
    ),
    "misspelt": (lambda timed: timed.select("sped"), {}, "did you mean 'speed'? columns are "),
    "attribute": (lambda timed: timed.where(timed.sped > 1), {}, "did you mean 'speed'? "),
    "ambiguous": (
        lambda plain: plain.join(plain.select("id", "speed"), "id").select("speed"),
        {},
        "drop or rename the column on one side",
    ),
    "time_and_number": (lambda timed: timed.where(F.col("at") > 5), {}, "F.timestamp_seconds("),
    "no_condition": (lambda timed: timed.where("speed + 1"), {}, "compare it with something"),
    "no_cast": (lambda timed: timed.select(F.col("at").cast("array<int>")), {}, "no such cast"),
    "and_of_columns": (
        lambda timed: timed.where(timed.id > 1 and timed.speed > 2),
        {},
        "write (a > 1) & (b > 2)",
    ),
    "other_columns": (lambda timed: timed.union(timed.select("id")), {}, ".unionByName("),
    "other_types": (
        lambda timed: timed.select("place").union(timed.select("id")),
        {},
        ".unionByName(",
    ),
    "written": (lambda timed: timed.write.parquet("x"), {}, "@app.serve(to=…)"),
    "started": (
        lambda timed: timed.writeStream.format("noop").start() and timed,
        {},
        "leave writeStream out",
    ),
    "second_watermark": (
        lambda timed: per_minute(timed.withWatermark("at", "1 minute")),
        {},
        "remove this withWatermark",
    ),
    "two_event_times": (
        lambda timed: timed.withColumn("w", F.window("at", "1 minute")).join(
            timed.select("id", F.window("at", "1 minute").alias("w"), F.col("at").alias("then")),
            ["id", "w"],
        ),
        {},
        "drop all but one of these columns",
    ),
    "session_in_update": (
        lambda timed: timed.groupBy(F.session_window("at", "5 minutes"), "id").count(),
        BY_ID,
        "leave mode='update' out",
    ),
    "session_of_all": (
        lambda timed: timed.groupBy(F.session_window("at", "5 minutes")).count(),
        {},
        "group by a key as well",
    ),
    "complete_rows": (
        lambda timed: timed.select("id"),
        {"mode": "complete"},
        "leave mode='complete' out",
    ),
    "state_in_append": (lambda timed: with_state(timed, "update"), {}, "in the same mode"),
    "state_in_update": (lambda timed: with_state(timed, "append"), BY_ID, "in the same mode"),
    "without": (
        lambda timed, second: timed.select("id").exceptAll(second.select("id")),
        {},
        "keep the rows without a partner",
    ),
    "in_both": (
        lambda timed, second: timed.select("id").intersect(second.select("id")),
        {},
        "use ms.join_within(…)",
    ),
    "with_batch": (
        lambda timed: timed.select("id").union(static(timed).select("id")),
        {},
        "make the other rows a source of their own",
    ),
    "within_watermark": (
        lambda plain: plain.dropDuplicatesWithinWatermark(["id"]),
        {},
        "use ms.dedup(…)",
    ),
    "pivoted": (lambda timed: timed.groupBy("id").pivot("name").count(), BY_ID, "name the values"),
    "subquery": (
        lambda timed: timed.sparkSession.sql(
            "SELECT * FROM {t} WHERE speed > (SELECT max(speed) FROM {t})", t=timed
        ),
        {},
        "join the two instead",
    ),
    "ungrouped": (
        lambda timed: timed.sparkSession.sql("SELECT id, count(*) FROM {t}", t=timed),
        {},
        "add GROUP BY",
    ),
    "two_windows": (
        lambda timed: timed.groupBy(F.window("at", "1 minute"), F.window("at", "1 hour")).count(),
        {},
        "make a table for each window",
    ),
    "window_of_number": (
        lambda timed: timed.groupBy(F.window("speed", "1 minute")).count(),
        {},
        "F.timestamp_seconds(",
    ),
    "no_function": (lambda timed: timed.selectExpr("lenght(name)"), {}, "did you mean 'length'? "),
    "no_sql": (lambda timed: timed.selectExpr("id +"), {}, "correct the text of the SQL"),
    "no_stream": (
        lambda timed: static(timed).select("id"),
        {},
        "make the answer from the parameters",
    ),
    "nested": (
        lambda timed: timed.groupBy("id").agg(F.sum(F.count("speed"))),
        BY_ID,
        "make the inner aggregate",
    ),
    "filtered_by_sum": (lambda timed: timed.where(F.sum("speed") > 1), {}, "aggregate first"),
    **{
        name: (ending(name), {}, "the function describes the query and returns it")
        for name in ("cache", "collect", "count", "head", "isEmpty", "rdd", "show", "toPandas")
    },
}


def declared(queries: Mapping[str, tuple[Any, ...]]) -> App:
    app = shop()
    for name, (query, options, *_) in queries.items():
        app.table(name=name, **options)(query)
    return app


@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow optimization")
def test_what_spark_refuses_is_refused_with_its_line_and_what_to_write_instead(
    spark: SparkSession,
) -> None:
    found = {e.facts.get("dataset"): e for e in rehearse(declared(REFUSED).graph, spark)}

    for name, (_, _, fix) in REFUSED.items():
        error = found[name]
        assert fix in error.fix, error
        assert error.at is not None
        assert error.at.file.endswith("test_refusal.py")
        assert "_LEGACY" not in error.what
        assert "spark.sql." not in str(error)
