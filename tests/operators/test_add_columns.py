"""Columns that a Python function computes, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from tests.apps import at, rows, run

import millstream as ms
from millstream.errors import MillstreamError
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def price(row: Any) -> dict[str, object]:
    return {"amount": float(row.text), "currency": "EUR" if row.id % 2 else None}


def shop(orders: ms.Memory, function: Any = price, **options: Any) -> ms.App:
    app = ms.App("shop")
    app.source(name="orders", event_time="at", watermark="1 minute")(lambda: orders)

    @app.table()
    def priced(orders: DataFrame) -> DataFrame:
        return ms.add_columns(orders, function, "amount DOUBLE, currency STRING", **options)

    return app


def order(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "at": at(f"12:00:{number:02d}"), "text": text}


SCHEMA = "id INT, at TIMESTAMP, text STRING"


def test_a_row_that_the_function_raises_on_goes_into_the_quarantine_with_its_trace(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = ms.Memory(SCHEMA)
    app = shop(orders, on_error="quarantine")
    orders.add(*[order(1, "1.5"), order(2, "two"), order(3, "3")])

    run(app, tmp_path)
    orders.add(*[order(4, "four"), order(5, "5")])
    run(app, tmp_path)

    assert rows(tmp_path, "priced", "id", "amount", "currency") == [
        (1, 1.5, "EUR"),
        (3, 3.0, "EUR"),
        (5, 5.0, "EUR"),
    ]
    aside = DeltaTable(str(Home.at(tmp_path).quarantine("priced"))).to_pyarrow_table().to_pylist()
    assert sorted(row["_rules"][0] for row in aside) == ["price raised"] * 2
    assert {"two", "four"} == {row["_row"].split('"text": "')[1].split('"')[0] for row in aside}
    assert all("could not convert string to float" in row["_raised"] for row in aside)
    assert all("test_add_columns.py" in row["_raised"] for row in aside)
    ledger = read_ledger(Home.at(tmp_path))
    assert (ledger.is_balanced, ledger.tables[0].quarantined) == (True, 2)


def test_by_default_the_query_stops_with_the_line_and_the_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = ms.Memory(SCHEMA)
    app = shop(orders)
    orders.add(*[order(2, "two")])

    with pytest.raises(MillstreamError) as caught:
        run(app, tmp_path)

    assert caught.value.code == "UDF_RAISED"
    assert "text='two'" in caught.value.what
    assert "test_add_columns.py" in str(caught.value.at)


def test_what_has_another_type_than_declared_is_put_aside_like_what_raises(
    spark: SparkSession, tmp_path: Path
) -> None:
    returned = {1: ("x", None), 2: (1.0, None, 3), 3: {"amount": 2.0}, 4: {"total": 1}, 5: 7.0}
    orders = ms.Memory(SCHEMA)
    app = shop(orders, lambda row: returned[row.id], on_error="quarantine")
    orders.add(*[order(number, "") for number in returned])

    run(app, tmp_path)

    assert rows(tmp_path, "priced", "id", "amount") == [(3, 2.0)]
    aside = DeltaTable(str(Home.at(tmp_path).quarantine("priced"))).to_pyarrow_table()
    assert aside.num_rows == 4


def test_the_event_time_stays_the_event_time(spark: SparkSession, tmp_path: Path) -> None:
    orders = ms.Memory(SCHEMA)
    app = shop(orders, on_error="quarantine")

    @app.table()
    def per_minute(orders: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        added = ms.add_columns(
            orders, lambda row: float(row.text), "amount DOUBLE", on_error="quarantine"
        )
        return added.groupBy(F.window("at", "10 seconds")).agg(F.sum("amount").alias("sum"))

    orders.add(*[order(1, "1"), order(2, "x"), {**order(1, "0"), "at": at("12:09:00")}])
    run(app, tmp_path)

    assert [row[1] for row in rows(tmp_path, "per_minute")] == [1.0]


def test_batch_stream_and_replay_agree(spark: SparkSession, tmp_path: Path) -> None:
    app = shop(ms.Memory(SCHEMA), on_error="quarantine")
    records = [order(n, "x" if n % 3 == 0 else str(n)) for n in range(12)]

    assert_prefix_consistent(app, rows=records, runs=6)


def test_without_an_app_a_row_that_raises_is_an_error(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "x")], "id INT, text STRING")

    added = ms.add_columns(frame, price, "amount DOUBLE, currency STRING", on_error="quarantine")

    with pytest.raises(PySparkException, match="could not convert"):
        added.collect()


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("amount", {}, "not columns with their types"),
        ("id INT", {}, "which the rows have already"),
        ("amount DOUBLE", {"on_error": "ignore"}, "on_error='ignore'"),
    ],
)
def test_what_is_declared_wrongly_is_refused(
    spark: SparkSession, columns: str, options: Any, said: str
) -> None:
    frame = spark.createDataFrame([(1, "x")], "id INT, text STRING")

    with pytest.raises(MillstreamError, match=said):
        ms.add_columns(frame, price, columns, **options)
