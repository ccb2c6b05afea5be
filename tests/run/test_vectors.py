from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame, functions as F
from tests.graphs import AT

import millstream as ms
from millstream.lake.compaction import FileSizes
from millstream.lake.condition import OwnRows
from millstream.lake.enforce import TableShape, open_table
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.lake.log import FEATURE, Facts, first_version
from millstream.lake.rows import read_rows
from millstream.lake.travel import read_table
from millstream.model.schema import Schema
from millstream.testing import Script
from millstream.upkeep.forget import Forgetting
from millstream.upkeep.maintain import Effort, Upkeep, UpkeepOptions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


SCHEMA = Schema.parse("user STRING, spent BIGINT").to_json()


def shop(place: Path) -> ms.App:
    app = ms.App("shop", home=place, keep_versions="1 day")

    @app.source
    def orders() -> ms.Files:
        return ms.Files("nowhere", schema="user STRING, price BIGINT")

    @app.table(mode="update", key=["user"])
    def per_user(orders: DataFrame) -> DataFrame:
        return orders.groupBy("user").agg(F.sum("price").alias("spent"))

    @app.table(mode="complete")
    def total(per_user: DataFrame) -> DataFrame:
        return per_user.agg(F.sum("spent").alias("spent"), F.count("*").alias("users"))

    return app


def staged(place: Path) -> list[DataFile]:
    place.mkdir(exist_ok=True)
    pq.write_table(pa.table({"user": ["ann"], "spent": [1]}), place / "part.parquet")
    return [DataFile.read(place / "part.parquet", {})]


def buy(script: Script, prices: dict[str, int]) -> None:
    for user, price in prices.items():
        script.send("orders", user=user, price=price)
    script.batch()


def test_spark_reads_a_table_whose_rows_are_deleted_where_they_are(
    tmp_path: Path, spark: SparkSession
) -> None:
    home = Home.at(tmp_path)
    path = home.table("per_user")
    with Script(shop(tmp_path), home, spark) as script:
        buy(script, {"ann": 1, "bob": 2, "cid": 3})
        merged = DeltaTable(str(path)).version()
        script.maintain()
        assert FEATURE in (DeltaTable(str(path)).protocol().reader_features or ())
        files = {*path.glob("*.parquet")}
        buy(script, {"bob": 10})
        begin = DeltaTable(str(path)).version()
        [new] = {*path.glob("*.parquet")} - files
        script.crash()
        script.restart()
        buy(script, {"cid": 20, "dan": 4})
        expected = {"ann": 1, "bob": 12, "cid": 23, "dan": 4}

        assert read_rows(path).num_rows == 4
        assert dict(read_table(spark, home, "per_user").collect()) == expected
        then = read_table(spark, home, "per_user", version=merged)
        assert dict(then.collect()) == {"ann": 1, "bob": 2, "cid": 3}
        assert script.table("total").rows("spent", "users") == [(40, 4)]
        feed = spark.read.format("delta").option("readChangeFeed", True)
        changes = feed.option("startingVersion", begin).option("endingVersion", begin)
        found = changes.load(str(path)).select("_change_type", "user", "spent").collect()
        assert sorted(map(tuple, found)) == [("delete", "bob", 2), ("insert", "bob", 12)]

        script.maintain()
        buy(script, {"ann": 100})
        assert dict(read_table(spark, home, "per_user").collect()) == expected | {"ann": 101}
        assert script.table("total").rows("spent", "users") == [(140, 4)]
    assert new.exists()


def test_only_a_large_update_table_is_prepared_and_no_other(tmp_path: Path) -> None:
    home, app = Home.at(tmp_path), shop(tmp_path)
    home.prepare("shop", sources=["orders"])
    with Lease.acquire(home) as lease:
        opened = {
            name: open_table(home.table(name), TableShape(name, SCHEMA, AT), epoch=lease.epoch)
            for name in ("orders", "per_user", "total")
        }
        for name, table in opened.items():
            table.append(staged(tmp_path / "s"), Facts(name, batch=0))
        for bytes_merged, prepared in ((1 << 20, []), (0, ["per_user"])):
            options = UpkeepOptions(sizes=FileSizes(merged=bytes_merged))
            for _ in Upkeep(app.graph, lease, options=options).steps(Effort.WHOLE):
                continue
            for table in opened.values():
                table.refresh()
            assert [name for name, table in opened.items() if table.prepared_key] == prepared


def test_forgetting_erases_rows_that_were_deleted_where_they_are(
    tmp_path: Path, spark: SparkSession
) -> None:
    home = Home.at(tmp_path)
    app = shop(tmp_path)
    with Script(app, home, spark) as script:
        buy(script, {"annabel": 1, "bob": 2})
        script.maintain()
        buy(script, {"annabel": 10})
    with Lease.acquire(home) as lease:
        forgetting = Forgetting(app.graph, lease, "orders", OwnRows.parse("user = 'annabel'"))

        receipt = forgetting.erase()

    # The state of the query, and what the script sends, are no tables.
    assert not [file for file in receipt.found if file.startswith("tables/")]
    assert receipt.rows == {"orders": 2, "per_user": 1}
    assert read_rows(home.table("per_user"), ["user"]).to_pylist() == [{"user": "bob"}]
    assert first_version(home.table("per_user")) > 0
    files = [file for file in home.table("per_user").parent.rglob("*") if file.is_file()]
    assert not [file for file in files if b"annabel" in file.read_bytes()]
