"""Reference data change while a stream runs; a batch that is retried sees what it saw first."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import functions as F
from tests.faults import raises

import millstream as ms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing import Script

pytestmark = pytest.mark.spark


class Market:
    """Names in a file, prices in a Delta table, and a function that counts its calls."""

    def __init__(self, place: Path) -> None:
        self.names, self.prices, self._asked = place / "names.csv", place / "prices", 0

    def say(self, name: str, price: int) -> None:
        self.names.write_text(f"tea,{name}\n")
        prices = pa.table({"product": ["tea"], "price": [price]})
        write_deltalake(str(self.prices), prices, mode="overwrite")

    def stock(self, spark: SparkSession) -> DataFrame:
        self._asked += 1
        return spark.sql(f"SELECT 'tea' AS product, {self._asked} AS asked")

    def app(self) -> ms.App:
        app = ms.App("shop")

        @app.source()
        def orders() -> ms.Memory:
            return ms.Memory("id BIGINT, product STRING")

        @app.table()
        def named(orders: DataFrame) -> DataFrame:
            schema = "product STRING, name STRING"
            names = ms.reference(str(self.names), format="csv", schema=schema)
            prices = ms.reference(str(self.prices))
            stock = ms.reference(self.stock, every="1000 days")
            return orders.join(names, "product").join(prices, "product").join(stock, "product")

        return app


class Shelf:
    """Two files, of which a version of an app reads some, in an order of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.say("name", "Tea")
        self.say("price", "1")

    def say(self, column: str, value: str) -> None:
        (self.place / f"{column}.csv").write_text(f"tea,{value}\n")

    def app(self, *read: str) -> ms.App:
        app = ms.App("shop")

        @app.source()
        def orders() -> ms.Memory:
            return ms.Memory("id BIGINT, product STRING")

        @app.table()
        def named(orders: DataFrame) -> DataFrame:
            for column in read:
                file, schema = self.place / f"{column}.csv", f"product STRING, {column} STRING"
                rows = ms.reference(file, format="csv", schema=schema)
                orders = orders.join(rows, "product", "left")
            reported = (F.col(column) for column in sorted(read))
            return orders.select("id", F.concat_ws(" ", *reported).alias("reported"))

        return app


def test_references_may_come_go_and_change_places_between_versions_of_an_app(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path)
    with stream(shelf.app("name", "price")) as s:
        for number, read in enumerate((["price", "name"], ["name"], ["price"], ["name", "price"])):
            s.send("orders", id=number, product="tea")
            s.batch()
            s.upgrade_to(shelf.app(*read))
        s.send("orders", id=4, product="tea")
        s.batch()

        reported = [(0, "Tea 1"), (1, "Tea 1"), (2, "Tea"), (3, "1"), (4, "Tea 1")]
        assert s.table("named").rows() == reported


def test_a_batch_that_is_retried_by_an_edited_app_sees_what_it_saw_first(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path)
    with stream(shelf.app("name", "price")) as s:
        s.send("orders", id=1, product="tea")
        s.crash(after="batch_staged", query="named")
        shelf.say("name", "Green tea")
        shelf.say("price", "2")
        s.upgrade_to(shelf.app("price", "name"))
        s.batch()
        s.send("orders", id=2, product="tea")
        s.batch()

        assert s.table("named").rows() == [(1, "Tea 1"), (2, "Green tea 2")]


def test_rows_that_cannot_be_read_are_reported_and_those_from_before_stand_also_after_a_restart(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    app = ms.App("shop")
    files, prices = tmp_path / "names", tmp_path / "prices"
    files.mkdir()
    pq.write_table(pa.table({"product": ["tea"], "name": ["Tea"]}), files / "1.parquet")
    write_deltalake(str(prices), pa.table({"product": ["tea"], "price": [1]}))

    @app.source()
    def orders() -> ms.Memory:
        return ms.Memory("id BIGINT, product STRING")

    @app.table()
    def named(orders: DataFrame) -> DataFrame:
        schema = "product STRING, name STRING"
        names = ms.reference(str(files), format="parquet", schema=schema)
        return orders.join(names, "product").join(ms.reference(str(prices)), "product")

    def ordered(number: int) -> list[str]:
        before = len(s.events)
        s.send("orders", id=number, product="tea")
        s.batch()
        reported = [event for event in s.events[before:] if event.kind == "not_renewed"]
        return [str(event.error).partition(":")[0] for event in reported]

    with stream(app) as s:
        assert ordered(1) == []
        (files / "2.parquet").write_bytes(b"PAR1, and the rest is on its way")
        (prices / "_delta_log" / "00000000000000000001.json").write_text("no JSON")
        unread = [f"[REFERENCE_UNREADABLE] ms.reference cannot read {p}" for p in (files, prices)]
        assert ordered(2) == unread
        (prices / "_delta_log" / "00000000000000000001.json").unlink()
        shutil.rmtree(files)
        before = len(s.events)
        s.restart()
        assert [e.kind for e in s.events[before:] if e.error] == ["not_renewed"]
        assert ordered(3) == [], "a minute is left to those who mend it"

        assert s.table("named").rows("id", "name", "price") == [
            (1, "Tea", 1),
            (2, "Tea", 1),
            (3, "Tea", 1),
        ]


def test_reference_rows_with_other_columns_are_reported_and_those_from_before_stand(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    app, products = ms.App("shop"), str(tmp_path / "products")
    write_deltalake(products, pa.table({"product": ["tea"], "name": ["Tea"]}))

    @app.source()
    def orders() -> ms.Memory:
        return ms.Memory("id BIGINT, product STRING")

    @app.table()
    def named(orders: DataFrame) -> DataFrame:
        return orders.join(ms.reference(products), "product")

    with stream(app) as s:
        for number, columns in enumerate(({}, {"price": [1]})):
            rows = pa.table({"product": ["tea"], "name": ["Tea"], **columns})
            write_deltalake(products, rows, mode="overwrite", schema_mode="overwrite")
            s.send("orders", id=number, product="tea")
            s.batch()

        assert s.table("named").rows("id", "name") == [(0, "Tea"), (1, "Tea")]
        errors = [event.error for event in s.events if event.kind == "not_renewed"]
        assert [error.code for error in errors if error] == ["REFERENCE_COLUMNS"]


def test_a_delta_table_that_is_made_anew_is_not_taken_for_the_one_before(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    market = Market(tmp_path)
    market.say("Tea", 1)
    with stream(market.app()) as s:
        s.send("orders", id=1, product="tea")
        s.batch()
        shutil.rmtree(market.prices)
        market.say("Tea", 2)
        s.send("orders", id=2, product="tea")
        s.batch()

        assert s.table("named").rows("id", "price") == [(1, 1), (2, 2)]
        s.send("orders", id=3, product="tea")
        s.crash(after="batch_staged", query="named")
        shutil.rmtree(market.prices)
        market.say("Tea", 3)
        with raises("REFERENCE_UNREADABLE", match="created again"):
            s.restart()


def test_a_batch_joins_with_what_is_no_stream_at_once_as_a_stream_does(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    app = ms.App("shop")
    at = datetime(2026, 1, 1, 11, tzinfo=UTC)
    pq.write_table(pa.table({"product": ["tea"], "since": [at], "price": [7]}), tmp_path / "1")

    @app.source(event_time="at", watermark="10 seconds")
    def orders() -> ms.Memory:
        return ms.Memory("product STRING, at TIMESTAMP")

    @app.table()
    def reported(orders: DataFrame) -> DataFrame:
        first = ms.dedup(orders, "product", within="1 minute").withColumn("price", F.lit(0))
        prices = ms.reference(tmp_path, format="parquet").where("price > 0")
        priced = ms.join_as_of(orders, prices, on="product")
        return first.unionByName(priced.selectExpr("product", "at", "int(price) AS price"))

    with stream(app) as s:
        s.send("orders", product="tea", at="12:00:01")
        s.batch()
        assert s.table("reported").rows("price") == [(7,)]
        s.assert_consistent()


def test_a_stream_goes_on_with_new_rows_and_a_retried_batch_with_its_own(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    def ordered(number: int) -> None:
        s.send("orders", id=number, product="tea")

    market = Market(tmp_path)
    market.say("Tea", 1)
    with stream(market.app()) as s:
        ordered(1)
        s.batch()
        market.say("Green tea", 2)
        ordered(2)
        s.batch()
        ordered(3)
        s.crash(after="batch_staged", query="named")
        market.say("Black tea", 3)
        s.restart()
        s.batch()
        ordered(4)
        s.batch()
        market.names.unlink()
        ordered(5)
        s.batch()

        assert s.table("named").rows("id", "name", "price", "asked") == [
            (1, "Tea", 1, 1),
            (2, "Green tea", 2, 1),
            (3, "Green tea", 2, 1),
            (4, "Black tea", 3, 1),
            (5, "Black tea", 3, 1),
        ]
        [event] = [event for event in s.events if event.kind == "not_renewed"]
        assert "names.csv" in str(event.error)
