from __future__ import annotations

import os
import shutil
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.apps import READING, app_of, reading, rows, run, timed
from tests.faults import raises

from millstream.crash import armed
from millstream.errors import OvertakenError
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.lake.ledger import read_ledger
from millstream.observe import Progress
from millstream.observe.history import History
from millstream.run.supervise import Restart
from millstream.systems.memory.source import Memory
from millstream.views.progress import look
from millstream.views.report import LedgerView
from millstream.views.status import StatusView

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.app import App
    from millstream.observe import Event

pytestmark = pytest.mark.spark


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    hasty = Restart(attempts=2, first_pause_s=0.01)
    monkeypatch.setattr("millstream.run.application.DEFAULT", hasty)


def with_table(source: Memory, **options: Any) -> App:
    app = timed(source)
    app.sql("clean", "SELECT id, speed FROM readings", **options)
    return app


def eventually(holds: Callable[[], bool], within_s: float = 60) -> None:
    until = time.monotonic() + within_s
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    assert holds()


def kinds(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.kind, event.query) for event in events]


def test_a_second_run_goes_on_where_the_first_ended(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = with_table(source)
    app.run(home=tmp_path, once=True)
    first = app.read("clean").count()

    source.add(reading(2, "12:00:00"))
    app.run(home=tmp_path, once=True)

    assert (first, rows(tmp_path, "clean", "id")) == (1, [(1,), (2,)])
    assert rows(tmp_path, "readings", "id", "_batch") == [(1, 0), (2, 1)]


def test_a_table_is_read_as_it_was_at_a_version(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add(reading(2, "12:00:00"))
    app = with_table(source)
    app.run(home=tmp_path, once=True)

    counts = [app.read("readings", version=version).count() for version in (0, 1, 2, 3)]
    with raises("UNKNOWN_VERSION") as caught:
        app.read("readings", version=99)

    assert counts == [0, 0, 1, 2]
    assert str(caught.value) == (
        "[UNKNOWN_VERSION] table 'readings' has no version 99\n  fix: versions run from 0 to 3"
    )


def test_an_app_runs_in_the_background_until_it_is_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    app = with_table(source)
    app.start(home=tmp_path)

    source.add(reading(1, "12:00:00"))
    eventually(lambda: rows(tmp_path, "clean", "id") == [(1,)])
    source.add(reading(2, "12:00:00"))
    eventually(lambda: rows(tmp_path, "clean", "id") == [(1,), (2,)])
    with raises("ALREADY_RUNNING") as caught:
        app.run(home=tmp_path)
    app.stop()
    app.stop()

    assert str(caught.value) == (
        "[ALREADY_RUNNING] app 'fleet' runs already in this process\n  fix: call app.stop() first"
    )
    source.add(reading(3, "12:00:00"))
    app.run(home=tmp_path, once=True)
    assert rows(tmp_path, "clean", "id") == [(1,), (2,), (3,)]


def test_what_a_write_of_the_first_offsets_left_behind_does_not_hold_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    for query in ("readings", "clean"):
        offsets = tmp_path / "checkpoints" / query / "offsets"
        offsets.mkdir(parents=True)
        (offsets / ".0.3fbf592d-7cff-4435-a4e8-395a0f40ed42.tmp").touch()

    with_table(source).run(home=tmp_path, once=True)

    assert rows(tmp_path, "clean", "id") == [(1,)]


def test_an_app_overtaken_in_the_background_says_so_when_it_is_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    app = with_table(Memory(READING))
    app.start(home=tmp_path)

    with Lease.acquire(Home.at(tmp_path), takeover=True):
        eventually(lambda: app._died_of is not None)
        with pytest.raises(OvertakenError):
            app.stop()

    app.stop()


def test_a_driver_that_takes_over_records_from_whom(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare("fleet", sources=["readings"])
    with Lease.acquire(home):
        app = with_table(Memory(READING))
        app.open({"home": tmp_path, "once": True, "takeover": True}).serve()

    with History.read_only(home.history) as history:
        [event] = [event for event in history.events() if event.kind == "taken_over"]
    assert event.detail == f"from pid {os.getpid()}, {socket.gethostname()}"


def raising(readings: DataFrame) -> DataFrame:
    raise ValueError("unlucky")


def forgetting(readings: DataFrame) -> None:
    readings.where("id > 0")


def misspelling(readings: DataFrame) -> DataFrame:
    faster = readings.where("speed > 1")
    return faster.select("sped")


@pytest.mark.parametrize(
    ("function", "code", "reported", "line"),
    [
        (raising, "FUNCTION_RAISED", "'wrong' raises ValueError: unlucky", 1),
        (forgetting, "NOT_A_DATAFRAME", "'wrong' returns None", 0),
        (misspelling, "QUERY_REFUSED", "Spark refuses 'wrong' (UNRESOLVED_COLUMN", 2),
    ],
)
def test_a_function_that_is_wrong_is_reported_with_the_line_before_anything_starts(
    spark: SparkSession,
    tmp_path: Path,
    function: Callable[..., Any],
    code: str,
    reported: str,
    line: int,
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = timed(source)
    app.table(name="wrong")(function)

    with raises(code) as caught:
        app.run(home=tmp_path, once=True)

    assert caught.value.what.startswith(reported)
    assert caught.value.at is not None
    assert caught.value.at.line == function.__code__.co_firstlineno + line
    assert rows(tmp_path, "readings") == []


def test_an_append_aggregate_without_a_watermark_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = app_of(source)
    app.sql("counted", "SELECT speed, count(*) AS n FROM readings GROUP BY speed")

    with raises("QUERY_REFUSED", match=r"Spark refuses 'counted' \(STREAMING_OUTPUT_MODE"):
        app.run(home=tmp_path, once=True)

    assert rows(tmp_path, "readings") == []


def checked(fails_if: Callable[[int], bool], error: type[Exception] = ConnectionError) -> Column:
    """Make a column with a function that raises for some numbers."""

    def refuse(number: int) -> int:
        raise error(number)

    # PySpark does not understand annotations that are text: a function with none is tried.
    check = F.udf(lambda number: refuse(number) if fails_if(number) else number, "bigint")
    return check("id").alias("id")


def test_a_row_that_always_fails_stops_its_table_and_leaves_the_others_running(
    spark: SparkSession, tmp_path: Path, impatient: None
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add(reading(13, "12:00:00"))
    app = timed(source)
    app.table(name="lucky")(lambda readings: readings.select(checked(lambda n: n == 13)))
    app.sql("after", "SELECT id FROM lucky")
    app.sql("beside", "SELECT id FROM readings")
    events: list[Event] = []
    running = app.open({"home": tmp_path, "once": True}, on_event=events.append)

    running.serve()

    with raises("QUERY_STOPPED") as caught:
        running.raise_if_stopped_for_good()
    assert str(caught.value) == (
        "[QUERY_STOPPED] stopped for good: lucky; stale because of it: after\n"
        "  fix: see the errors above"
    )
    assert [
        pair for pair in kinds(events) if pair[0] in ("restarting", "query_failed", "stale")
    ] == [
        ("restarting", "lucky"),
        ("restarting", "lucky"),
        ("query_failed", "lucky"),
        ("stale", "after"),
    ]
    [error] = [event.error for event in events if event.kind == "query_failed"]
    assert error is not None
    assert error.code == "SPARK_FAILED"
    assert error.what == "query 'lucky' failed in Spark (PYTHON): ConnectionError: 13"
    assert rows(tmp_path, "beside") == [(1,), (13,)]
    assert rows(tmp_path, "lucky") == []


def test_a_failure_that_passes_is_tried_again_and_every_row_is_written_once(
    spark: SparkSession, tmp_path: Path, impatient: None
) -> None:
    home, marker = tmp_path / "home", tmp_path / "marker"
    source = Memory(READING)
    source.add(*(reading(n, "12:00:00") for n in range(20)))
    app = timed(source)

    def is_first_time(number: int) -> bool:
        # Spark tries a task four times before the batch fails.
        tries = len(list(marker.parent.glob("marker.*")))
        if number == 13 and tries < 4:
            (marker.parent / f"marker.{tries}").touch()
        return number == 13 and tries < 4

    app.table(name="lucky")(lambda readings: readings.select(checked(is_first_time)))
    app.sql("after", "SELECT id FROM lucky")

    events = run(app, home, fail_fast=False)

    assert ("restarting", "lucky") in kinds(events)
    assert sorted(rows(home, "lucky")) == [(n,) for n in range(20)]
    assert sorted(rows(home, "after")) == [(n,) for n in range(20)]


def test_a_function_that_raises_on_a_row_stops_its_query_at_once_with_line_and_arguments(
    spark: SparkSession, tmp_path: Path, impatient: None
) -> None:
    source = Memory(READING)
    source.add(reading(13, "12:00:00"))
    app = timed(source)
    app.table(name="lucky")(
        lambda readings: readings.select(checked(lambda n: n == 13, ValueError))
    )
    app.sql("after", "SELECT id FROM lucky")
    app.sql("divided", "SELECT id / (id - 13) AS share FROM readings")
    events: list[Event] = []
    running = app.open({"home": tmp_path, "once": True}, on_event=events.append)

    running.serve()

    failed = {event.query: event.error for event in events if event.error}
    assert "restarting" not in {event.kind for event in events}
    lucky, divided = failed["lucky"], failed["divided"]
    assert lucky.code == "UDF_RAISED"
    assert lucky.what.endswith("raises ValueError: 13, called with number=13")
    assert lucky.at is not None
    assert lucky.at.file.endswith("tests/run/test_application.py")
    assert divided.code == "EXPRESSION_FAILED"
    assert "DIVIDE_BY_ZERO" in divided.what


def test_every_look_at_a_home_shows_what_failed_until_a_run_gets_through_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    def lucky(fails_if: Callable[[int], bool]) -> App:
        app = timed(source)
        app.table(name="lucky")(lambda readings: readings.select(checked(fails_if, ValueError)))
        app.sql("after", "SELECT id FROM lucky")
        return app

    def looks() -> tuple[dict[str, str | None], bool]:
        status = StatusView.of(Home.at(tmp_path), None)
        troubles = {dataset.name: dataset.trouble for dataset in status.datasets}
        ledger = LedgerView.of(Home.at(tmp_path), read_ledger(Home.at(tmp_path)))
        return troubles, ledger.is_complete

    source = Memory(READING)
    source.add(reading(13, "12:00:00"))
    with raises("QUERY_STOPPED"):
        lucky(lambda n: n == 13).run(home=tmp_path, once=True)
    after_failure = looks()

    lucky(lambda _: False).run(home=tmp_path, once=True)

    assert after_failure == ({"readings": None, "lucky": "failed", "after": "stale"}, False)
    assert looks() == ({"readings": None, "lucky": None, "after": None}, True)


def test_a_run_that_is_stopped_while_a_query_is_restarting_does_not_end_well(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(13, "12:00:00"))
    app = timed(source)
    app.table(name="lucky")(lambda readings: readings.select(checked(lambda n: n == 13)))
    events: list[Event] = []
    running = app.open({"home": tmp_path}, on_event=events.append)

    def stop_when_it_restarts() -> None:
        if ("restarting", "lucky") in kinds(events):
            running.ask_to_stop()

    running.serve(stop_when_it_restarts)

    with raises("SPARK_FAILED"):
        running.raise_if_stopped_for_good()


def test_a_watermark_that_is_defined_twice_fails_a_run_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), reading(2, "12:10:00"))
    app = timed(source)

    @app.table()
    def per_minute(readings: DataFrame) -> DataFrame:
        later = readings.withColumn("then", F.expr("at + INTERVAL 10 SECONDS"))
        return (
            later.withWatermark("then", "2 minutes").groupBy(F.window("then", "1 minute")).count()
        )

    with raises("QUERY_REFUSED") as caught:
        app.run(home=tmp_path, once=True)

    assert "remove this withWatermark" in caught.value.fix


def test_the_first_fault_stops_everything_if_so_asked(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(13, "12:00:00"))
    app = timed(source)
    app.table(name="lucky")(lambda readings: readings.select(checked(lambda n: n == 13)))
    app.sql("later", "SELECT id FROM readings")

    with raises("SPARK_FAILED"):
        run(app, tmp_path)

    assert rows(tmp_path, "later") == []


def test_only_selected_datasets_run(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = with_table(source)
    app.sql("other", "SELECT id FROM clean")

    with raises("NOTHING_LANDED") as caught:
        run(app, tmp_path, select=["other"])
    run(app, tmp_path, select=["+clean"])
    assert Home.at(tmp_path).tables == ("clean", "readings")
    run(app, tmp_path, select=["other"])

    assert str(caught.value) == (
        "[NOTHING_LANDED] 'other' reads 'clean', which has no table yet\n"
        "  fix: run 'clean' first: `millstream run APP --once --select +clean`"
    )
    assert rows(tmp_path, "other") == [(1,)]


def test_a_lost_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = with_table(source)
    run(app, tmp_path)

    shutil.rmtree(tmp_path / "checkpoints" / "clean")
    with raises("CHECKPOINT_RESET") as caught:
        run(app, tmp_path)

    checkpoint = str(tmp_path / "checkpoints" / "clean")
    assert str(caught.value) == (
        "[CHECKPOINT_RESET] 'clean' holds batch 0, but its checkpoint knows none: "
        "running on would skip or repeat rows\n"
        f"  fix: restore {checkpoint!r}; or `millstream checkpoint repair APP`, which writes it "
        "again from what has landed, or has the table computed again"
    )
    assert rows(tmp_path, "clean", "id") == [(1,)]


def test_a_table_restored_to_an_older_copy_is_refused_and_can_be_rebuilt(
    spark: SparkSession, tmp_path: Path
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = with_table(source)
    run(app, home)
    shutil.copytree(home / "tables" / "clean", copy)
    source.add(reading(2, "12:00:00"))
    run(app, home)

    shutil.rmtree(home / "tables" / "clean")
    shutil.copytree(copy, home / "tables" / "clean")
    with raises("TABLE_RESTORED") as caught:
        run(app, home)

    assert caught.value.what == (
        "'clean' holds batches up to 0, but its checkpoint has committed batch 1: "
        "the batches between are lost from the table"
    )
    shutil.rmtree(home / "tables" / "clean")
    shutil.rmtree(home / "checkpoints" / "clean")
    run(app, home)
    assert rows(home, "clean", "id") == [(1,), (2,)]


def test_a_look_between_commit_and_progress_shows_the_batch_that_its_rates_are_of(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    for batch in range(3):
        source.add(*(reading(number, "12:00:00") for number in range(batch + 1)))
    running = timed(source).open({"home": tmp_path, "once": True, "fail_fast": True})
    shown = {"readings": look(running.queries, {})[0]}
    seen: list[tuple[int, int]] = []

    def look_on(point: str, _: str, committed: int) -> None:
        if point == "sink_commit":
            [view] = look(running.queries, shown)
            shown["readings"] = view
            seen.append((committed, view.batch))

    with armed(Home.at(tmp_path).path, look_on):
        running.serve()

    assert seen == [(0, -1), (1, -1), (2, -1)]
    [last] = look(running.queries, shown)
    assert last.batch == 2
    assert last.input_rate


def test_a_live_source_is_read_directly_and_its_wrong_rows_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    unset = {"id": 4, "at": "1970-01-01T00:00:00Z"}
    source.add(reading(1, "12:00:00"), "nonsense", reading(2, None), reading(3, "12:01:00"), unset)
    app = timed(source, live=True)
    app.sql("clean", "SELECT id FROM readings")
    running = app.open({"home": tmp_path, "once": True, "fail_fast": True})

    running.serve()

    running.raise_if_stopped_for_good()
    assert rows(tmp_path, "clean") == [(1,), (3,)]
    assert Home.at(tmp_path).tables == ("clean",)
    [query] = running.queries
    progress = Progress.of(query.running.progress or {})
    assert progress.observed == {
        "readings": {
            "input": 5,
            "ok": 2,
            "late": 0,
            "future": 0,
            "malformed": 2,
            "rejected": 1,
            "blank": 0,
        }
    }


def test_an_interrupted_run_leaves_no_query_behind(spark: SparkSession, tmp_path: Path) -> None:
    running = with_table(Memory(READING)).open({"home": tmp_path})

    def interrupt() -> None:
        if spark.streams.active:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        running.serve(interrupt)

    assert spark.streams.active == []
    Lease.acquire(Home.at(tmp_path)).release()


def test_an_app_that_has_finished_in_the_background_can_be_started_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    app = timed()
    app.start(home=tmp_path, once=True)
    eventually(lambda: not app.is_running)

    app.start(home=tmp_path, once=True)
    app.stop()

    assert not app.is_running
