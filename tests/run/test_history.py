"""What a run leaves in the history of its home."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.apps import READING, app_of, moment, reading, run, timed, wait_for

import millstream as ms
from millstream.app import App
from millstream.lake.home import Home
from millstream.observe import Event
from millstream.observe.history import History
from millstream.systems.memory.source import Memory
from millstream.testing.hook import Hook

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def history_of(home: Path) -> History:
    return History.read_only(Home.at(home).history)


def with_table(source: Memory, **options: Any) -> App:
    app = timed(source)
    app.sql("clean", "SELECT id, speed FROM readings", **options)
    return app


def test_batches_are_recorded_with_what_spark_reports_on_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), reading(2, "12:30:00"), {"id": "not a number"})
    source.add(reading(3, "12:31:00"))
    begun = datetime.now(UTC)

    run(with_table(source), tmp_path)

    history = history_of(tmp_path)
    landed = history.batches("readings")
    assert [(b.batch, b.input, b.output) for b in landed] == [(0, 3, 2), (1, 1, 1)]
    assert landed[0].counts == {"input": 3, "ok": 2, "malformed": 1}
    assert landed[1].greatest_event_time == moment("12:31:00")
    assert landed[1].complete_to == moment("12:21:00")
    assert all(b.duration_ms and b.phases["addBatch"] > 0 for b in landed)
    assert all(begun <= b.at <= datetime.now(UTC) for b in landed)
    last = history.last("clean")
    assert last is not None
    assert (last.total, last.read, last.behind_rows, last.behind_s) == (3, {"readings": 3}, 0, 0)


def test_a_run_is_recorded_with_its_settings_and_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = with_table(source)
    run(app, tmp_path)
    run(app, tmp_path)

    second, first = history_of(tmp_path).runs()

    assert (first.id, second.id) == (1, 2)
    assert first.app_hash == second.app_hash != ""
    assert (second.pid, second.outcome) == (os.getpid(), "finished")
    assert second.ended_at is not None
    assert first.started_at < second.started_at < second.ended_at
    assert second.settings["home"].value == str(tmp_path)
    assert second.settings["home"].origin == "command line"


def test_batches_that_were_not_recorded_are_read_from_the_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    app = with_table(source)
    for number in range(3):
        source.add(reading(number, "12:00:00"))
        run(app, tmp_path)
    before = history_of(tmp_path).batches("readings")
    Home.at(tmp_path).history.unlink()

    run(app, tmp_path)

    found = history_of(tmp_path).batches("readings")
    assert [b.batch for b in found] == [0, 1, 2]
    assert [(b.input, b.run, b.total) for b in found] == [(b.input, b.run, b.total) for b in before]
    assert all(abs((a.at - b.at).total_seconds()) < 1 for a, b in zip(found, before, strict=True))


def test_a_failure_is_recorded_with_its_place(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = app_of(source)

    @app.table()
    def halved(readings: DataFrame) -> DataFrame:
        return readings.select(F.udf(lambda n: n / 0)("id").alias("half"))

    running = app.open({"home": tmp_path, "once": True, "fail_fast": True})
    running.serve()

    history = history_of(tmp_path)
    [failed] = [e for e in history.events(dataset="halved") if e.kind == "query_failed"]
    assert (failed.code, failed.run) == ("UDF_RAISED", 1)
    assert failed.file is not None
    assert failed.file.endswith("test_history.py")
    assert [r.outcome for r in history.runs()] == ["failed"]


def test_a_run_that_cannot_begin_is_recorded_too(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    run(with_table(source), tmp_path)
    app = timed(source)
    app.sql("clean", "SELECT id, CAST(speed AS STRING) AS speed FROM readings")

    with pytest.raises(Exception, match="SCHEMA_CHANGED"):
        app.open({"home": tmp_path})

    history = history_of(tmp_path)
    [failed] = [e for e in history.events() if e.kind == "run_failed"]
    assert failed.code == "SCHEMA_CHANGED"
    assert history.runs()[0].outcome == "failed"


def test_added_columns_are_an_event(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    run(with_table(source, evolve=True), tmp_path)
    app = timed(source)
    app.sql("clean", "SELECT id, speed, 2 * speed AS double FROM readings", evolve=True)

    run(app, tmp_path)

    changes = [e.dataset for e in history_of(tmp_path).events() if e.kind == "schema_changed"]
    assert changes == ["clean"]


def test_history_is_written_while_the_app_runs(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    app = with_table(source)
    app.start(home=tmp_path)
    history = history_of(tmp_path)

    for number in range(3):
        source.add(reading(number, "12:00:00"))
        wait_for(lambda: {"readings", "clean"} <= history.lasts().keys())
        wait_for(lambda: {b.total for b in history.lasts().values()} == {number + 1})  # noqa: B023

    assert history.runs()[0].ended_at is None
    app.stop()
    assert history.runs()[0].outcome == "stopped"


def test_a_run_does_not_depend_on_its_history(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    Home.at(tmp_path).history.mkdir(parents=True)

    events: list[Event] = run(with_table(source), tmp_path)

    assert [e.kind for e in events if e.kind.startswith("history")] == ["history_stopped"]
    assert (tmp_path / "tables" / "clean").exists()


def test_functions_react_to_events_and_objectives_are_reported(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, seen = Memory(READING), list[tuple[str, str]]()
    source.add(reading(1, "12:00:00"), {"id": "not a number"})
    with Hook() as hook:
        app = App("fleet", notify=ms.Webhook(hook.address))
        app.source(name="readings", failed_rows="10 %", freshness="1 second")(lambda: source)
        app.sql("clean", "SELECT id FROM readings", expect={"late": "id > 1"}, on_violation="warn")

        @app.on("expectation_failed", "failed_rows", "run_started", "stale")
        def note(event: Any) -> None:
            seen.append((event.kind, event.dataset))

        @app.on("run_started")
        def broken(event: Any) -> None:
            raise LookupError(event.kind)

        events = list[Event]()
        running = app.open({"home": tmp_path}, on_event=events.append)
        serving = threading.Thread(target=running.serve)
        serving.start()
        wait_for(lambda: len(hook.received) == 2)
        wait_for(lambda: len(seen) == 4)
        running.ask_to_stop()
        serving.join()

    assert sorted(seen) == [
        ("expectation_failed", "clean"),
        ("failed_rows", "readings"),
        ("run_started", ""),
        ("stale", "readings"),
    ]
    assert {request.body["row"]["state"] for request in hook.received} == {"failed_rows", "stale"}
    [raised] = [event.error for event in events if event.kind == "reaction_failed"]
    assert raised is not None
    assert raised.code == "REACTION_RAISED"
    assert raised.at is not None
    assert __file__.endswith(raised.at.file)
    assert "LookupError: run_started" in raised.what
    kinds = [event.kind for event in history_of(tmp_path).events()]
    assert {"reaction_failed", "failed_rows", "stale", "run_ended"} <= set(kinds)
