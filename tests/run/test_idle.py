from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.apps import READING, rows, timed
from tests.graphs import source

import millstream as ms
from millstream.checkpoint.entry import Offsets
from millstream.errors import fault
from millstream.lake.delta import FencedTable
from millstream.lake.frontier import moment
from millstream.lake.home import Home
from millstream.lake.log import Facts, commits
from millstream.landing.land import Landing
from millstream.landing.landing_sink import LandingSink
from millstream.model.dataset import EventTime
from millstream.model.schema import Schema
from millstream.model.trigger import Trigger
from millstream.run.idle import IdleSources, InputWatermark
from millstream.run.query import StreamRun
from millstream.systems.memory.source import Memory
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing import Script

    Stream = Callable[..., Script]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RETURNS = source("returns", event_time="at", watermark="1 minute", idle="10 minutes")


def at(minute: float) -> datetime:
    return NOON + minute * MINUTE


def us(minute: float) -> int:
    return round(at(minute).timestamp() * 1_000_000)


def opened(home: Path, name: str = "returns") -> FencedTable:
    FencedTable.create(Home.at(home).table(name), schema=Schema.parse("at TIMESTAMP").to_json())
    return FencedTable(Home.at(home).table(name), name=name, epoch=1)


@dataclass
class Desk:
    """A source under a clock: its landing, its checkpoint, and the query between the two."""

    table: FencedTable
    now: datetime = NOON
    is_waiting: bool = True
    planned: dict[int, datetime] = field(default_factory=dict)
    trigger: Trigger = field(default_factory=lambda: Trigger("default"))

    def planned_at_ms(self, batch: int) -> int:
        if batch not in self.planned:
            raise fault(
                "CHECKPOINT_DAMAGED", query="returns", file="offsets", why="gone", home="home"
            )
        return round(self.planned[batch].timestamp() * 1000)

    def idle(self) -> IdleSources:
        sink = LandingSink(Landing.of(RETURNS), self.table, self.table.path, self.planned_at_ms)
        log: Any = self
        made = IdleSources(lambda: self.now)
        made.add(sink, RETURNS, log)
        made.add(sink, source("orders", event_time="at", watermark="1 minute"), log)
        return made

    def supervised(self, name: str = "returns") -> Any:
        @dataclass
        class Query:
            name: str

        @dataclass
        class Supervised:
            query: Query
            running: Any
            trigger: Trigger

        return Supervised(Query(name), Running(self), self.trigger)


class Running(StreamRun):
    """A query that is asked only whether it waits."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @property
    def is_waiting(self) -> bool:
        return self.desk.is_waiting

    def between_batches(self, act: Callable[[], None]) -> None:
        act()


def reported(table: FencedTable) -> tuple[datetime | None, datetime | None]:
    """Give the frontier of a table and since when it is quiet, as its last commit has them."""
    [last, *_] = commits(table.path)
    assert last.facts is not None
    return moment(last.facts.frontier), moment(last.facts.quiet_since)


def test_the_clock_moves_the_watermark_of_a_source_that_has_given_nothing_for_long(
    home: Path,
) -> None:
    table = opened(home)
    table.append([], Facts("q", batch=4, changed=4, frontier=us(-1), event_time="at"))
    desk = Desk(table, planned={4: NOON})
    idle, before = desk.idle(), table.version

    for minute, is_waiting in ((9, True), (12, False)):
        desk.now, desk.is_waiting = at(minute), is_waiting
        idle.look_after(desk.supervised())
        idle.settle(desk.supervised("orders"))
    assert table.version == before

    desk.now, desk.is_waiting = at(12.5), True
    idle.look_after(desk.supervised())
    assert reported(table) == (at(1.5), NOON)
    assert table.facts.batch == 4

    desk.now = at(14)
    idle.look_after(desk.supervised())
    assert reported(table) == (at(1.5), NOON), "a quarter of the time to be idle has not passed"

    desk.now, desk.trigger = at(17), Trigger.parse("5 minutes")
    idle.look_after(desk.supervised())
    assert reported(table) == (at(4), NOON), "it was looked at last at 12:15"

    table.append([], Facts("q", batch=5, changed=5, frontier=us(4), greatest_event_time=us(17)))
    desk.now = at(18)
    idle.settle(desk.supervised())
    assert reported(table) == (at(4), None)


def test_a_source_without_any_row_is_idle_after_the_run_began(home: Path) -> None:
    table = opened(home)
    desk = Desk(table)
    idle = desk.idle()

    desk.now = at(9)
    idle.settle(desk.supervised())
    assert table.facts.frontier is None

    desk.now = at(13)
    idle.settle(desk.supervised())
    assert reported(table) == (at(2), NOON)


@dataclass(frozen=True)
class Log:
    """A checkpoint with one batch, that has read tables to some versions."""

    read: dict[str, int]

    def offsets(self, batch: int) -> Offsets:
        begin, end = '{"sourceVersion":1,"reservoirId":', '"index":-1,"isStartingVersion":false}'
        ends = [f'{begin}"{i}","reservoirVersion":{v + 1},{end}' for i, v in self.read.items()]
        return Offsets(0, 0, (*ends, "-"))


@pytest.mark.parametrize(
    ("read", "minute"),
    [({"a": 1, "b": 1}, 3), ({"a": 2, "b": 1}, 4), ({"a": 1}, None), ({"a": 1, "b": 0}, None)],
)
def test_a_query_may_go_as_far_as_the_least_of_what_it_has_read(
    read: dict[str, int], minute: int | None, home: Path
) -> None:
    tables = {"a": opened(home, "a"), "b": opened(home, "b")}
    for name, minutes in (("a", (3, 5)), ("b", (4,))):
        for each in minutes:
            tables[name].publish(Facts(frontier=us(each), event_time="at"))
    ids = {name: str(table.snapshot().metadata().id) for name, table in tables.items()}
    log: Any = Log({ids[name]: version for name, version in read.items()})
    times = dict.fromkeys(tables, EventTime("at", MINUTE))

    found = InputWatermark(times, Home.at(home), log)(0)

    assert found == (None if minute is None else us(minute) // 1000 - 1)


def test_a_table_whose_rows_are_not_of_that_time_says_nothing(home: Path) -> None:
    table = opened(home)
    table.publish(Facts(frontier=us(3), event_time="until"))
    log: Any = Log({str(table.snapshot().metadata().id): 1})

    assert InputWatermark({"returns": EventTime("at", MINUTE)}, Home.at(home), log)(0) is None


GOING_ON = ("returns", "repairs", "sound", "movements", "most")


def small_shop(home: Path) -> ms.App:
    """Orders come all the time; returns come seldom."""
    app = ms.App("shop", home=home)

    @app.source(event_time="at", watermark="1 minute")
    def orders() -> object:
        return ms.Memory("item STRING, at TIMESTAMP")

    @app.source(event_time="at", watermark="1 minute", idle="10 minutes")
    def returns() -> object:
        return ms.Memory("item STRING, at TIMESTAMP")

    @app.table()
    def sound(returns: DataFrame) -> DataFrame:
        return returns.where("item <> 'dummy'")

    @app.table()
    def moved(orders: DataFrame, sound: DataFrame) -> DataFrame:
        return orders.unionByName(sound).groupBy(F.window("at", "1 minute")).count()

    return app


def shop(home: Path) -> ms.App:
    """The same, and repairs, which never come."""
    app = small_shop(home)

    @app.source(event_time="at", watermark="1 minute", idle="10 minutes")
    def repairs() -> object:
        return ms.Memory("item STRING, at TIMESTAMP")

    @app.table(mode="update", key=["window"])
    def movements(orders: DataFrame, sound: DataFrame, repairs: DataFrame) -> DataFrame:
        every = orders.unionByName(sound).unionByName(repairs)
        return every.groupBy(F.window("at", "1 minute")).count()

    @app.table(mode="complete")
    def most(movements: DataFrame) -> DataFrame:
        return movements.agg(F.max("count").alias("most"))

    return app


def counts(script: Script, table: str) -> list[tuple[int, int]]:
    """Give the minute and the count of every window."""
    return [(row[0].start.minute, row[1]) for row in script.table(table).rows()]


def step(script: Script, minutes: int, **arriving: list[str]) -> None:
    """Let time pass, then some rows arrive."""
    script.advance(minutes * MINUTE)
    for name, times in arriving.items():
        for each in times:
            script.send(name, item="pen", at=each)


def test_an_idle_source_holds_nobody_back_for_ever(stream: Stream, home: Path) -> None:
    app = shop(home)
    with stream(app, home=home) as script:
        step(script, 0, orders=["12:00:10"], returns=["12:00:20"])
        script.batch()
        step(script, 9, orders=["12:09:00"])
        script.batch()

        assert counts(script, "moved") == []
        assert app.frontier("repairs") is None

        step(script, 4, orders=["12:13:00"])
        script.crash(after="sink_commit", query="moved")
        script.restart()
        script.batch()

        assert {app.frontier(name) for name in GOING_ON} == {at(2)}
        assert app.frontier("moved") == at(2) - timedelta(milliseconds=1)
        assert counts(script, "moved") == [(0, 2)]

        step(script, 0, returns=["12:01:59", "12:02:00"])
        script.batch()
        assert script.verdicts("returns") == {"ok": 2, "late": 1}
        script.assert_consistent()

        step(script, 14)
        script.crash(after="batch_staged", query="moved")
        script.restart()
        script.run_once()

        assert app.frontier("returns") == at(16)
        assert counts(script, "moved") == [(0, 2), (2, 1), (9, 1)]
        script.assert_consistent()
        script.assert_frontiers()


def test_batch_is_stream_is_replay_whenever_time_passes(spark: SparkSession, home: Path) -> None:
    times = [f"12:{minute:02d}:{minute * 7 % 60:02d}" for minute in range(0, 40, 4)]
    arriving = [{"item": "pen", "at": each} for each in times]
    rows = {"orders": arriving, "returns": arriving[::3]}

    assert_prefix_consistent(small_shop(home), rows, runs=1, spark=spark)


def test_in_a_run_the_clock_of_the_machine_closes_the_last_window(
    spark: SparkSession, home: Path
) -> None:
    readings = Memory(READING)
    app = timed(readings, watermark="0 s", idle="1 second")
    query = "SELECT window, count(*) AS n FROM readings GROUP BY window(at, '1 second')"
    app.sql("per_second", query)
    readings.add({"id": 1, "at": datetime.now(UTC).isoformat(), "speed": 1.0})

    app.start(home=home, fail_fast=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (home_has := rows_in(home, "per_second")):
        time.sleep(0.1)
    app.stop()

    assert home_has == [1]
    frontier = app.frontier("readings")
    assert frontier is not None
    assert frontier < datetime.now(UTC) - timedelta(seconds=1)


def rows_in(home: Path, name: str) -> list[int]:
    return [n for (n,) in rows(home, name, "n")] if name in Home.at(home).tables else []
