from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, functions as F
from tests.faults import raises
from tests.graphs import AT
from tests.lake.test_delta import files
from tests.systems.test_table_source import committed

import millstream as ms
from millstream.cli.interrupt import Interrupts
from millstream.cli.program import run_command
from millstream.errors import OvertakenError
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.lake.log import Facts, commit_path, facts_of, first_version
from millstream.lake.maintenance import Maintained, read_maintained
from millstream.lake.retention import Retention, TableReader
from millstream.lake.stored import stored_files
from millstream.model.graph import Graph
from millstream.observe import Event
from millstream.testing import Script
from millstream.upkeep.maintain import BackgroundUpkeep, Upkeep, UpkeepOptions, by_driver
from millstream.upkeep.readers import readers_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.lake.delta import FencedTable

SHOP = """
import millstream as ms

app = ms.App("shop", keep_versions="0 seconds")

@app.source
def orders() -> ms.Files:
    return ms.Files("nowhere", schema="n BIGINT")
"""
ORDERS = "user STRING, at TIMESTAMP, price BIGINT"


def shop(place: Path, *, more: bool = False) -> ms.App:
    app = ms.App("shop", home=place, keep_versions="0 seconds")

    @app.source(event_time="at", watermark="1 minute")
    def orders() -> ms.Files:
        return ms.Files("nowhere", schema=ORDERS)

    @app.table(expect={"paid": "price > 0"})
    def clean(orders: DataFrame) -> DataFrame:
        return orders.withColumn("double", F.col("price") * 2)

    @app.table(mode="update", key=["user"])
    def per_user(clean: DataFrame) -> DataFrame:
        return clean.groupBy("user").agg(F.sum("price").alias("spent"))

    @app.table(mode="complete")
    def total(per_user: DataFrame) -> DataFrame:
        return per_user.agg(F.sum("spent").alias("spent"))

    if more:

        @app.table
        def copied(orders: DataFrame) -> DataFrame:
            return orders.select("user", "price")

    return app


def reader(place: Path, of: Path) -> ms.App:
    app = ms.App("reader", home=place)
    app.source(name="clean")(lambda: ms.Table(str(of), "clean"))
    app.sql("dear", "SELECT user, price FROM clean WHERE price > 5")
    return app


def buy(script: Script, count: int, begin: int = 0) -> None:
    for number in range(begin, begin + count):
        price = -1 if number % 5 == 4 else number
        second = f"12:{number // 60:02d}:{number % 60:02d}"
        script.send("orders", user="ab"[number % 2], at=second, price=price)
        script.batch()


def test_maintained_tables_are_read_on_by_streams_new_tables_and_other_apps(  # noqa: PLR0915
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "shop", tmp_path / "reader"
    home = Home.at(first)
    with Script(shop(first), home, spark) as script:
        buy(script, 12)
        with Script(reader(second, first), Home.at(second), spark, is_scripted=False) as other:
            other.drain()
            script.maintain()
            files = stored_files(DeltaTable(str(home.table("orders"))))
            assert [file.batches for file in files] == [(0, 11)]
            buy(script, 8, begin=12)
            script.maintain()

            # The other app has read the first twelve batches only.
            kept = read_maintained(home, "clean")
            assert kept.waits_for is not None
            assert kept.waits_for.home == str(second)
            assert commit_path(home.table("clean"), 20).exists()
            assert first_version(home.table("orders")) > 0
            other.drain()
            expected = [n for n in range(6, 20) if n % 5 != 4]
            assert sorted(other.table("dear").rows("price")) == [(n,) for n in expected]
            script.crash()
            script.restart()
            buy(script, 2, begin=20)
            script.upgrade_to(shop(first, more=True))
            # The first batch of the new table is counted in files of the snapshot there is now.
            files = stored_files(DeltaTable(str(home.table("orders"))))
            script.maintain()
            assert stored_files(DeltaTable(str(home.table("orders")))) == files
            buy(script, 2, begin=22)
            other.drain()
            script.maintain()
            buy(script, 2, begin=24)
            other.drain()
            script.maintain()
            other.assert_consistent()
        script.assert_consistent()
        assert len(script.table("copied").rows()) == 26
        assert first_version(home.table("clean")) > 0

    place = ["--home", str(first)]
    assert run_command(["status", *place, "--sizes", "--json"], Interrupts()) == 0
    sizes = {table["name"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert sizes["orders"]["compacted"] > sizes["orders"]["into"] > 0
    assert sizes["orders"]["files"] < 8
    assert sizes["orders"]["deleted"] >= 12
    assert run_command(["status", *place, "--sizes"], Interrupts()) == 0
    assert "keeps" in capsys.readouterr().out


def test_a_reader_whose_home_is_gone_is_waited_for(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "shop")
    committed(home.path, "clean")
    gone = tmp_path / "gone"

    ms.Table(home.path, "clean").register("clean", gone, AT)
    ms.Table(home.path, "clean").register("clean", gone, AT)

    assert [*readers_of(home, Graph("shop", ()), "clean")] == [TableReader("clean", str(gone), -1)]


def test_a_reader_that_cannot_register_is_refused(tmp_path: Path) -> None:
    committed(tmp_path, "clean")
    (tmp_path / "readers").write_text("no folder")

    with raises("READER_NOT_REGISTERED", match="cannot be written"):
        ms.Table(tmp_path, "clean").register("clean", tmp_path / "reader", AT)


def small_table(home: Path, batches: int, name: str = "clean") -> FencedTable:
    table = committed(home, name, "k STRING, n BIGINT")
    for batch in range(1, batches):
        table.append(files(home / "s", [("a", batch)]), Facts("q", batch=batch))
    return table


def test_without_a_driver_the_command_does_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_table(tmp_path / "home", 40)
    (tmp_path / "app.py").write_text(SHOP)

    command = ["maintain", str(tmp_path / "app.py"), "--home", str(tmp_path / "home"), "--json"]
    assert run_command(command, Interrupts()) == 0

    [table] = json.loads(capsys.readouterr().out)["tables"]
    assert (table["compacted"], table["into"], table["files"]) == (39, 1, 1)
    assert table["first_version"] > 0
    assert facts_of(tmp_path / "home/tables/clean").batch == 39


def test_a_running_driver_does_it_when_it_is_asked(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    small_table(home.path, 20)
    with Lease.acquire(home) as lease:
        options = UpkeepOptions(look_every_s=0.01)
        background = BackgroundUpkeep(Upkeep(Graph("shop", ()), lease, (), options), home)
        background.start()
        try:
            assert by_driver(home, "maintain", wait_s=60)
        finally:
            background.close()

        with raises("MAINTENANCE_WAITS", match="has not finished maintenance after 0 s"):
            by_driver(home, "maintain", wait_s=0)

    assert read_maintained(home, "clean").compacted == 19
    assert not by_driver(home, "maintain", wait_s=60), "no driver runs"


def test_an_overtaken_driver_stops_maintaining(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    small_table(home.path, 20)
    with Lease.acquire(home) as zombie:
        Lease.acquire(home, takeover=True).release()

        with pytest.raises(OvertakenError):
            [*Upkeep(Graph("shop", ()), zombie).steps()]

    assert read_maintained(home, "clean") == Maintained()


def test_maintenance_at_the_end_of_a_run_stops_when_the_run_is_to_stop(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    for name in ("a", "b"):
        small_table(home.path, 20, name)
    with Lease.acquire(home) as lease:
        upkeep = Upkeep(Graph("shop", ()), lease)
        BackgroundUpkeep(upkeep, home).finish(lambda: False)

    assert [read_maintained(home, name).compacted > 0 for name in ("a", "b")] == [True, False]


def test_a_table_that_cannot_be_maintained_is_reported_and_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    home = Home.at(tmp_path)
    small_table(home.path, 20)
    committed(home.path, "before")
    damaged = home.table("before") / "_delta_log" / f"{1:020d}.json"
    damaged.write_text("{")
    with Lease.acquire(home) as lease:
        events = list[Event]()
        upkeep = Upkeep(Graph("shop", ()), lease, report=events.append)
        [*upkeep.steps(), *upkeep.steps()]

    assert read_maintained(home, "before").trouble
    assert read_maintained(home, "clean").compacted == 19
    # Once each: it is the same trouble at the second look.
    assert [(event.kind, event.query) for event in events] == [
        ("maintenance_failed", "before"),
        ("maintained", "clean"),
    ]
    assert events[1].detail == "19 files into 1"


def test_rows_are_kept_as_declared_for_each_dataset(tmp_path: Path) -> None:
    app = ms.App("shop", keep_versions="2 days")

    @app.source(keep="90 days", keep_versions="1 hour")
    def orders() -> ms.Files:
        return ms.Files("nowhere", schema=ORDERS)

    app.sql("clean", "SELECT * FROM orders", keep_quarantined="30 days")
    home = Home.at(tmp_path)
    home.prepare("shop", sources=[])
    with Lease.acquire(home) as lease:
        upkeep = Upkeep(app.graph, lease)

    hours, days = timedelta(hours=1), timedelta(days=1)
    assert upkeep.retention("orders") == Retention(hours, 90 * days)
    assert upkeep.retention("clean") == Retention(2 * days, None)
    assert upkeep.retention("clean__quarantine") == Retention(2 * days, 30 * days)
    assert upkeep.retention("removed") == Retention(2 * days, None)


@pytest.mark.parametrize("option", ["keep", "keep_versions"])
def test_a_length_of_time_that_cannot_be_read_is_a_fault(option: str) -> None:
    app = ms.App("shop")
    options: Any = {option: "soon"}
    app.source(name="orders", **options)(lambda: ms.Files("nowhere", schema=ORDERS))

    assert [fault.code for fault in app._declared.faults(places=False)] == ["DURATION_REFUSED"]
