from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.faults import raises

import millstream as ms
from millstream.errors import NotDeterministicError
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = [
    {"at": f"12:{second // 60:02d}:{second % 60:02d}", "user": "ab"[second % 2], "n": second}
    for second in range(0, 300, 23)
]
FEW = ROWS[:4]


def app_with(
    build: Callable[[DataFrame], DataFrame], watermark: str = "1 minute", /, **options: Any
) -> ms.App:
    app = ms.App("kit")
    app.source(name="clicks", event_time="at", watermark=watermark)(
        lambda: ms.Memory("user STRING, at TIMESTAMP, n BIGINT")
    )
    app.table(name="answer", **options)(_reading_clicks(build))
    return app


def _reading_clicks(build: Callable[[DataFrame], DataFrame]) -> Callable[..., DataFrame]:
    def answer(clicks: DataFrame) -> DataFrame:
        return build(clicks)

    return answer


def per_minute(clicks: DataFrame) -> DataFrame:
    window = F.window("at", "1 minute")
    return clicks.groupBy("user", window).agg(F.count("*").alias("clicks"))


def lines_of(script: str) -> int:
    return len(script.splitlines())


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_windowed_count_is_prefix_consistent(spark: SparkSession, mode: str) -> None:
    key = {"key": ["user", "window"]} if mode == "update" else {}
    app = app_with(per_minute, mode=mode, **key)

    assert_prefix_consistent(app, ROWS, runs=3, spark=spark)


def test_a_query_with_rand_is_named(spark: SparkSession) -> None:
    app = app_with(lambda clicks: clicks.withColumn("dice", F.rand()))

    with pytest.raises(NotDeterministicError, match="'answer' gives other rows") as reported:
        assert_prefix_consistent(app, FEW, runs=4, spark=spark)
    assert "rand()" in reported.value.fix


def test_an_answer_that_depends_on_the_order_of_arrival_is_named(spark: SparkSession) -> None:
    app = app_with(
        lambda clicks: clicks.groupBy("user").agg(F.collect_list("n").alias("numbers")),
        mode="update",
        key=["user"],
    )

    with pytest.raises(NotDeterministicError, match="by its order"):
        assert_prefix_consistent(app, FEW, runs=20, spark=spark)


def test_a_table_that_loses_late_rows_is_shown_by_a_short_script(spark: SparkSession) -> None:
    def only_news(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            times = batch.column("at").to_pylist()
            newest = [max(times[: n + 1]) for n in range(len(times))]
            yield batch.filter(pa.array([at == new for at, new in zip(times, newest, strict=True)]))

    app = app_with(
        lambda clicks: clicks.coalesce(1).mapInArrow(only_news, clicks.schema),
        "2 minutes",
    )

    with raises("NOT_PREFIX_CONSISTENT", "NOT_DETERMINISTIC") as reported:
        assert_prefix_consistent(app, FEW, runs=20, spark=spark)
    assert str(reported.value).count("send(") <= 3


def test_an_app_that_counts_twice_on_a_retry_is_shown_by_a_short_script(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen = str(tmp_path / "seen")
    os.mkdir(seen)

    def count_by_side_effect(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for user, n in zip(*(batch.column(c).to_pylist() for c in ("user", "n")), strict=True):
                with open(f"{seen}/{user}-{n}", "a") as file:
                    file.write("x")
                yield pa.RecordBatch.from_pydict(
                    {"user": [user], "n": [n], "times": [os.path.getsize(f"{seen}/{user}-{n}")]}
                )

    app = app_with(
        lambda clicks: clicks.mapInArrow(
            count_by_side_effect, "user STRING, n BIGINT, times BIGINT"
        )
    )

    with raises("NOT_PREFIX_CONSISTENT", "NOT_DETERMINISTIC"):
        assert_prefix_consistent(app, FEW, runs=20, spark=spark)


def test_rows_for_an_unknown_source_are_refused(spark: SparkSession) -> None:
    app = app_with(per_minute)

    with raises("UNKNOWN_IN_SCRIPT", match="has no source 'click'"):
        assert_prefix_consistent(app, {"click": ROWS}, runs=1, spark=spark)


def test_rows_name_their_source_unless_there_is_only_one(spark: SparkSession) -> None:
    app = ms.App("shop")
    for name in ("orders", "clicks"):
        app.source(name=name)(lambda: ms.Memory("id BIGINT"))
    app.sql("paid", "SELECT id FROM orders")

    with raises("ROWS_OF_NO_SOURCE", match="app 'shop' has 2 sources") as caught:
        assert_prefix_consistent(app, [{"id": 1}], spark=spark)

    assert caught.value.fix.endswith("its sources are clicks, orders")
