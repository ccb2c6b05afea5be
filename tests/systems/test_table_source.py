from __future__ import annotations

import json
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.faults import raises

import millstream as ms
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home
from millstream.lake.log import Facts, commits, facts_of
from millstream.lake.staging import Staged
from millstream.landing.land import Landing
from millstream.landing.landing_sink import LandingSink
from millstream.model.connector import Followed
from millstream.model.schema import Schema
from millstream.testing import Script
from millstream.testing.script import NOON

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.errors import MillstreamError

    Stream = Callable[..., Script]

MINUTE = 60_000_000
TYPED = "user STRING, at TIMESTAMP"
LANDED = f"{TYPED}, n BIGINT"


def committed(place: Path, name: str, columns: str = TYPED, **facts: Any) -> FencedTable:
    """Write a table as an app does, without one."""
    home = Home.at(place)
    home.prepare("shop", sources=[])
    FencedTable.create(home.table(name), schema=Schema.parse(columns).to_json())
    table = FencedTable(home.table(name), name=name, epoch=1)
    table.take()
    table.append([], Facts("q", batch=0, **{"mode": "append", **facts}))
    return table


def reading(table: ms.Table, **options: Any) -> ms.App:
    app = ms.App("reader")
    app.source(name="orders", **options)(lambda: table)
    return app


def fault_of(table: ms.Table, **options: Any) -> MillstreamError:
    [fault] = reading(table, **options).faults
    assert fault.at is not None
    return fault


def test_columns_and_event_time_are_those_of_the_table(tmp_path: Path) -> None:
    committed(tmp_path, "clean", frontier=0, event_time="at", delay=90 * MINUTE)

    app = reading(ms.Table(str(tmp_path), "clean"))

    [source] = app.graph.sources
    assert app.faults == ()
    assert Schema.parse(source.connector.schema).to_ddl() == TYPED
    assert (source.event_time, source.watermark) == ("at", "90 minutes")


@pytest.mark.parametrize(("said", "waits"), [("1 minute", "90 minutes"), ("2 hours", "2 hours")])
def test_a_reader_may_wait_longer_than_rows_come_behind_but_not_less(
    tmp_path: Path, said: str, waits: str
) -> None:
    committed(tmp_path, "clean", frontier=0, event_time="at", delay=90 * MINUTE)

    app = reading(ms.Table(tmp_path, "clean"), event_time="at", watermark=said)

    assert [source.watermark for source in app.graph.sources] == [waits]


def test_another_column_is_the_reader_s_own_matter(tmp_path: Path) -> None:
    committed(tmp_path, "clean", f"{TYPED}, paid TIMESTAMP", event_time="at", delay=MINUTE)

    app = reading(ms.Table(tmp_path, "clean"), event_time="paid", watermark="5 seconds")

    assert [(s.event_time, s.watermark) for s in app.graph.sources] == [("paid", "5 seconds")]


def test_an_event_time_without_bounds_is_refused(tmp_path: Path) -> None:
    committed(tmp_path, "both", frontier=0, event_time="at")

    fault = fault_of(ms.Table(tmp_path, "both"), event_time="at", watermark="1 hour")

    assert fault.code == "EVENT_TIME_UNBOUNDED"


def test_a_home_that_is_not_there_is_reported(tmp_path: Path) -> None:
    fault = fault_of(ms.Table(tmp_path / "nowhere", "clean"), event_time="at", watermark="1 s")
    assert fault.code == "SOURCE_HOME"


def test_a_table_that_is_not_there_is_reported_with_the_nearest(tmp_path: Path) -> None:
    committed(tmp_path, "clean")

    fault = fault_of(ms.Table(tmp_path, "cleen"))

    assert fault.code == "SOURCE_TABLE"
    assert fault.fix.startswith("did you mean 'clean'?")


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_rows_that_change_are_refused_and_others_offered(tmp_path: Path, mode: str) -> None:
    committed(tmp_path, "clean")
    committed(tmp_path, "per_user", mode=mode)

    fault = fault_of(ms.Table(tmp_path, "per_user"))

    assert fault.code == "TABLE_CHANGES"
    assert "the home has clean;" in fault.fix


def test_a_home_of_a_newer_millstream_is_refused(tmp_path: Path) -> None:
    committed(tmp_path, "clean")
    manifest = json.loads((tmp_path / "manifest").read_text())
    (tmp_path / "manifest").write_text(json.dumps({**manifest, "format": 99}))

    assert fault_of(ms.Table(tmp_path, "clean")).code == "HOME_NEWER"


def test_columns_that_are_said_are_checked_against_the_table_s(tmp_path: Path) -> None:
    committed(tmp_path, "clean")

    assert reading(ms.Table(tmp_path, "clean", columns=TYPED)).faults == ()
    fault = fault_of(ms.Table(tmp_path, "clean", columns="user STRING"))
    assert fault.code == "COLUMNS_DIFFER"


def test_an_app_stands_for_its_home(tmp_path: Path) -> None:
    committed(tmp_path, "clean")
    producer = ms.App("shop", home=tmp_path)

    assert reading(ms.Table(producer, "clean")).faults == ()


def test_a_header_and_a_profile_name_it_too(tmp_path: Path, monkeypatch: Any) -> None:
    committed(tmp_path / "shop", "clean")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "orders.sql").write_text(
        "-- source: table\n-- home: shop\n-- dataset: clean\n"
    )
    (tmp_path / "millstream.toml").write_text(
        '[profile.live.sources.orders]\nkind = "table"\nhome = "shop"\ndataset = "clean"\n'
    )
    by_header = ms.App("a")
    by_header.sql_files(tmp_path / "sql")
    bound = ms.App("b")
    bound.source(name="orders")(lambda: ms.Files(str(tmp_path), schema=TYPED))
    bound.choose("live", beside=tmp_path)

    for app in (by_header, bound):
        assert app.faults == ()
        assert [s.connector for s in app.graph.sources] == [ms.Table("shop", "clean")]


AT = ms.App("nowhere").at


def test_a_table_with_further_commits_is_the_one_that_was_read(tmp_path: Path) -> None:
    table, follows = committed(tmp_path, "clean", frontier=5), ms.Table(tmp_path, "clean")
    before = follows.followed_to(2)
    table.append([], Facts("q", batch=1, mode="append", frontier=9))

    follows.check_position(before.position, "orders", AT)
    follows.check_position({}, "orders", AT)

    assert [follows.followed_to(v).frontier for v in (0, 1, 2, 3)] == [None, None, 5, 9]


def test_a_table_that_was_replaced_or_restored_is_reported(tmp_path: Path) -> None:
    table, follows = committed(tmp_path, "clean"), ms.Table(tmp_path, "clean")
    table.append([], Facts("q", batch=1, mode="append"))
    read = follows.followed_to(table.version).position
    shutil.rmtree(table.path)
    committed(tmp_path, "clean")

    with raises("HISTORY_GONE", match="no version after 2 now"):
        follows.check_position(read, "orders", AT)
    again = FencedTable(table.path, name="clean", epoch=2)
    again.append([], Facts("q", batch=1, mode="append"))
    with raises("HISTORY_GONE", match="its version 3 is another one now"):
        follows.check_position(read, "orders", AT)


def test_a_log_that_no_longer_goes_back_so_far_is_reported(tmp_path: Path) -> None:
    table, follows = committed(tmp_path, "clean"), ms.Table(tmp_path, "clean")
    for batch in (1, 2):
        table.append([], Facts("q", batch=batch, mode="append"))
    read = follows.followed_to(1).position
    for version in (0, 1):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()

    follows.check_position(read, "orders", AT)
    (table.path / "_delta_log" / f"{2:020d}.json").unlink()
    with raises("HISTORY_GONE", match="its log begins at version 3 now"):
        follows.check_position(read, "orders", AT)


def landing_sink(place: Path, frontier: int | None, **options: Any) -> LandingSink:
    """Open a landing that has rows to minute 10, was complete to minute 9, and follows a table."""
    [source] = reading(ms.Table(place, "clean"), event_time="at", **options).graph.sources
    landing, path = Landing.of(source), place / "tables" / "orders"
    FencedTable.create(path, schema=landing.table_schema)
    table = FencedTable(path, name="orders", epoch=1)
    reached = Facts("q", batch=0, greatest_event_time=10 * MINUTE, frontier=9 * MINUTE)
    table.append([], reached)
    followed = Followed({"version": 3}, frontier, "at", None)
    return LandingSink(landing, table, place / "staging", lambda _: 0, lambda _: followed)


def test_a_landing_is_as_complete_as_what_it_follows_and_passes_it_never(tmp_path: Path) -> None:
    committed(tmp_path, "clean", frontier=0, event_time="at", delay=MINUTE)
    nothing = Staged((), {"_rows": 0}, "")

    sink = landing_sink(tmp_path, 11 * MINUTE, watermark="1 minute")
    sink.commit(nothing, 1, "q")
    assert (sink.facts.frontier, sink.facts.inputs) == (11 * MINUTE, {"version": 3})

    shutil.rmtree(tmp_path / "tables" / "orders")
    sink = landing_sink(tmp_path, 8 * MINUTE, watermark="1 minute")
    with raises("FRONTIER_PASSED", match="past the frontier of the table it reads"):
        sink.commit(nothing, 1, "q")
    assert facts_of(tmp_path / "tables" / "orders").batch == 0


def test_a_longer_watermark_does_not_take_back_what_was_complete(tmp_path: Path) -> None:
    committed(tmp_path, "clean", frontier=0, event_time="at", delay=MINUTE)

    sink = landing_sink(tmp_path, 8 * MINUTE, watermark="5 minutes")
    sink.commit(Staged((), {"_rows": 0}, ""), 1, "q")

    assert sink.bound == sink.facts.frontier == 9 * MINUTE


def shop() -> ms.App:
    app = ms.App("shop")
    app.source(name="clicks", event_time="at", watermark="10 minutes")(lambda: ms.Memory(LANDED))
    app.source(name="calls", event_time="at", watermark="1 minute")(lambda: ms.Memory(LANDED))

    @app.table()
    def clean(clicks: DataFrame) -> DataFrame:
        return ms.dedup(clicks.where("n >= 0"), ["user", "at"])

    @app.table()
    def both(clicks: DataFrame, calls: DataFrame) -> DataFrame:
        counted = clicks.union(calls).groupBy(F.window("at", "2 minutes"), "user").count()
        return counted.select(F.window_time("window").alias("until"), "user", "count")

    @app.table(mode="update", key=["user"])
    def users(clean: DataFrame) -> DataFrame:
        return clean.groupBy("user").count()

    @app.table(mode="complete")
    def busy(users: DataFrame) -> DataFrame:
        return users.where("count > 2")

    return app


def board(place: Path) -> ms.App:
    app = ms.App("board")
    app.source(name="clicks", watermark="1 second")(lambda: ms.Table(place, "clean"))
    app.source(name="counted")(lambda: ms.Table(place, "both"))

    @app.table()
    def per_user(clicks: DataFrame) -> DataFrame:
        counted = clicks.groupBy(F.window("at", "5 minutes"), "user").count()
        return counted.select("window.end", "user", "count")

    return app


@pytest.mark.spark
def test_two_apps_in_a_row_are_one_batch_whatever_crashes(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with Script(shop(), Home.at(first), spark) as producer:
        send(producer, clicks=(4,), calls=(4,))
        producer.drain()
        assert complete_to(first, "clicks", "clean", "users", "busy") == [-6] * 4
        with Script(board(first), Home.at(second), spark, is_scripted=False) as consumer:
            send(producer, clicks=(0, 20))
            producer.crash(after="files_moved", query="clean")
            consumer.crash(after="batch_staged", query="clicks")
            producer.restart()
            consumer.restart()
            consumer.drain()
            # Those of 11 and 13 come within the watermark, the one of 1 is late.
            send(producer, clicks=(11, 1), calls=(22,))
            producer.drain()
            assert complete_to(first, "clicks", "clean", "users", "busy", "calls") == [10] * 4 + [
                21
            ]
            send(producer, clicks=(13, 58), calls=(39, 55))
            producer.drain()
            consumer.drain()
            producer.assert_consistent()
            consumer.assert_consistent()

            assert complete_to(first, "clicks", "clean", "users", "busy", "calls") == [48] * 4 + [
                54
            ]
            assert complete_to(first, "both") == complete_to(second, "counted") == [48]
            assert complete_to(second, "clicks", "per_user") == [48, 48]
            assert producer.verdicts("clicks") == {"ok": 6, "late": 1}
            assert consumer.verdicts("clicks") == {"ok": 6}
            assert set(consumer.verdicts("counted")) == {"ok"}
            for mine, theirs, columns in (
                ("clicks", "clean", ("user", "at", "n")),
                ("counted", "both", ("user", "until", "count")),
            ):
                assert consumer.table(mine).rows(*columns) == producer.table(theirs).rows(*columns)
            ends = [f"{row.end:%H:%M}" for row in consumer.table("per_user").rows("end")]
            assert sorted(ends) == ["12:05", "12:15", "12:25"]
            hold_histories(first, second)


def send(script: Script, **minutes: tuple[int, ...]) -> None:
    for source, sent in minutes.items():
        for minute in sent:
            script.send(source, at=f"12:{minute:02d}", user="ab"[minute % 2], n=minute)


def complete_to(place: Path, *names: str) -> list[int | None]:
    """Give the frontiers of tables in minutes after noon; Spark's are a millisecond behind."""
    found = (ms.App("any", home=place).frontier(name) for name in names)
    return [round((m - NOON) / timedelta(minutes=1)) if m else None for m in found]


def hold_histories(*homes: Path) -> None:
    """Hold every table to have never gone back."""
    for home in map(Home.at, homes):
        for name in home.tables:
            reported = [c.facts.frontier for c in commits(home.table(name)) if c.facts]
            known = [frontier for frontier in reported if frontier is not None]
            assert known == sorted(known, reverse=True)
