from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings, strategies as st
from pyspark.sql import functions as F
from tests.apps import READING, app_of, at, forget_commit, moment, reading, rows, run, timed
from tests.faults import raises

from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.lake.staging import Staged, stage
from millstream.lake.stored import stored_files
from millstream.landing.land import Landing
from millstream.operators import dedup
from millstream.systems.memory.source import Memory
from millstream.views.status import StatusView

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def verdicts(home: Path) -> dict[int, str]:
    return dict(rows(home, "readings", "id", "_verdict"))


def test_every_row_lands_with_a_verdict_and_a_reason(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add(
        reading(2, "12:01:00"),
        reading(3, "11:49:59.999"),
        {"id": 4, "at": "2099-01-01T00:00:00Z", "speed": 1.0},
        reading(5, None),
        '{"id": "six"}',
        "nonsense",
        reading(8, "12:02:00", speed=-1.0),
    )
    app = timed(source, expect={"speed is positive": "speed > 0"})

    run(app, tmp_path)

    assert rows(tmp_path, "readings", "_batch", "_position", "_verdict", "_reason") == [
        (0, 1, "ok", None),
        (1, 1, "ok", None),
        (
            1,
            2,
            "late",
            "at is 2026-05-01 11:49:59.999, before the watermark 2026-05-01 11:50:00",
        ),
        (1, 3, "future", "at is 2099-01-01 00:00:00, more than 1 day ahead of its arrival"),
        (1, 4, "malformed", "event time 'at' is null"),
        (1, 5, "malformed", "expected int, got string, at $.id"),
        (1, 6, "malformed", "not JSON: invalid character (byte 4)"),
        (1, 7, "rejected", "violates 'speed is positive'"),
    ]
    raw = dict(rows(tmp_path, "readings", "_position", "_raw"))
    assert (raw[5], raw[6], raw[7]) == (b'{"id": "six"}', b"nonsense", None)


@pytest.mark.parametrize("rules", [{}, {"speed is positive": "speed > 0"}])
def test_rows_of_a_day_have_files_of_their_own(
    spark: SparkSession, tmp_path: Path, rules: dict[str, str]
) -> None:
    source = Memory(READING)
    source.add(
        reading(1, "12:00:00"),
        reading(2, "23:59:59.999999"),
        {"id": 3, "at": "2026-05-02T00:00:00Z", "speed": 1.0},
        {"id": 4, "at": "2099-01-01T00:00:00Z", "speed": 1.0},
        reading(5, None),
    )
    source.add(reading(6, "11:00:00"), reading(7, "23:55:00"))
    app = timed(source, partition_by="day", expect=rules)
    app.sql("clean", "SELECT * FROM readings")

    run(app, tmp_path)

    first, second = date(2026, 5, 1), date(2026, 5, 2)
    assert rows(tmp_path, "readings", "id", "_verdict", "_day") == [
        (1, "ok", first),
        (2, "ok", first),
        (3, "ok", second),
        (4, "future", None),
        (5, "malformed", None),
        (6, "late", None),
        (7, "ok", first),
    ]
    files = stored_files(DeltaTable(str(tmp_path / "tables" / "readings")))
    days = {file.partition["_day"] for file in files if file.partition["_verdict"] == "ok"}
    assert days == {"2026-05-01", "2026-05-02"}
    assert sorted(rows(tmp_path, "clean", "id")) == [(1,), (2,), (3,), (7,)]
    columns = [field.name for field in DeltaTable(str(tmp_path / "tables/clean")).schema().fields]
    assert columns == ["id", "at", "speed"]


def test_the_ledger_counts_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), "x", "y")
    source.add(reading(2, "11:00:00"))

    run(timed(source), tmp_path)

    [entry] = read_ledger(Home.at(tmp_path)).sources
    assert (entry.name, entry.batches, entry.input, entry.is_balanced) == ("readings", 2, 4, True)
    assert entry.verdicts == {"ok": 1, "late": 1, "future": 0, "malformed": 2, "rejected": 0}


def test_blank_lines_and_rows_that_were_bent_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    places: list[tuple[Any, ...]] = []
    runs: list[tuple[Any, dict[str, str]]] = [
        (True, {}),
        (True, {"slow": "speed < 9"}),
        ((), {}),
        (["id"], {}),
    ]
    for number, (lenient, rules) in enumerate(runs):
        source = Memory(READING, lenient=lenient)
        source.add(reading(number, "12:00:00"), "", '{"id": " 7 ", "at": "2026-05-01"}', "  ", "x")
        home = tmp_path / ("one" if not rules else "ruled")

        run(timed(source, expect=rules), home)

        [entry] = read_ledger(Home.at(home)).sources
        places.append((entry.input, entry.verdicts["ok"], entry.blank, entry.bent))
        assert entry.is_balanced

    assert places == [(5, 2, 2, 1), (5, 1, 2, 1), (10, 3, 4, 1), (15, 4, 6, 2)]
    assert StatusView.of(Home.at(home), None).datasets[0].verdicts["blank"] == 6


def test_a_row_exactly_at_the_watermark_is_not_late(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add(reading(2, "11:50:00"), reading(3, "11:49:59.999999"))

    run(timed(source), tmp_path)

    assert verdicts(tmp_path) == {1: "ok", 2: "ok", 3: "late"}


def test_rows_of_one_batch_do_not_make_each_other_late(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), reading(2, "01:00:00"), reading(3, "12:01:00"))

    run(timed(source), tmp_path)

    assert set(verdicts(tmp_path).values()) == {"ok"}


def test_only_right_rows_move_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add({"id": 2, "at": "2099-01-01T00:00:00Z"}, reading(3, "18:00:00", speed=-1.0))
    source.add(reading(4, "11:55:00"), reading(5, "11:00:00"))

    run(timed(source, expect={"speed is positive": "speed > 0"}), tmp_path)

    assert verdicts(tmp_path) == {1: "ok", 2: "future", 3: "rejected", 4: "ok", 5: "late"}


def test_the_watermark_is_remembered_from_run_to_run(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    run(timed(source), tmp_path)

    source.add(reading(2, "11:00:00"))
    run(timed(source), tmp_path)

    assert verdicts(tmp_path) == {1: "ok", 2: "late"}


def test_how_far_the_future_may_be_is_settable(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add({"id": 1, "at": "2099-01-01T00:00:00Z"}, {"id": 2, "at": "2299-01-01T00:00:00Z"})

    run(timed(source, future="36500 days"), tmp_path)

    assert verdicts(tmp_path) == {1: "ok", 2: "future"}


UNSET = ({"id": 1, "at": "1970-01-01T00:00:00Z"}, {"id": 2, "at": "1969-07-20T20:17:00Z"})
FIRST = {"id": 3, "at": "1970-01-01T00:00:00.000001Z"}


def test_rows_of_a_clock_that_is_not_set_are_kept_aside_and_the_first_after_it_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    app = timed(source)
    app.table(name="once")(lambda readings: dedup(readings, ["id", "at"]))
    app.table(name="counted")(lambda readings: readings.groupBy(F.window("at", "1 hour")).count())
    for arrived in (*UNSET, FIRST), [reading(4, "12:00:00")], UNSET:
        source.add(*arrived)
        run(app, tmp_path)

    reasons = {
        f"at is {at}, which is not after 1970-01-01 00:00:00"
        for at in ("1970-01-01 00:00:00", "1969-07-20 20:17:00")
    }
    aside = [r for r in rows(tmp_path, "readings", "_verdict", "_reason") if r[0] != "ok"]
    assert set(aside) == {("rejected", reason) for reason in reasons}
    assert len(aside) == 4
    assert rows(tmp_path, "once", "id") == [(3,), (4,)]
    assert rows(tmp_path, "counted", "count") == [(1,)]
    [entry] = read_ledger(Home.at(tmp_path)).sources
    assert entry.is_balanced


def test_rows_of_a_clock_that_is_not_set_are_not_read_live(spark: SparkSession) -> None:
    source = Memory(READING)
    landing = Landing.of(timed(source, live=True).graph.sources[0])
    records = [(json.dumps(row).encode(), "memory", n) for n, row in enumerate((*UNSET, FIRST))]
    raw = spark.createDataFrame(records, "value BINARY, _origin STRING, _position BIGINT")

    for read in (landing.live(raw), landing.live_by_row(raw, counted=True)):
        assert [row.id for row in read.collect()] == [3]


def test_a_source_without_event_time_may_be_as_old_as_it_likes(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(*UNSET)

    run(app_of(source), tmp_path)

    assert verdicts(tmp_path) == {1: "ok", 2: "ok"}


def test_a_source_without_event_time_has_no_late_rows(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), reading(2, None))
    source.add(reading(3, "01:00:00"))

    run(app_of(source), tmp_path)

    assert set(verdicts(tmp_path).values()) == {"ok"}


def test_late_rows_stop_a_source_that_allows_none(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add(reading(2, "12:01:00"), reading(3, "11:00:00"), reading(4, "11:01:00"))
    app = timed(source, late="fail")

    with raises("LATE_ROWS") as caught:
        run(app, tmp_path)

    assert str(caught.value) == (
        "[LATE_ROWS] batch 1 of source 'readings' has 2 late rows, and late='fail'; "
        "nothing of it was landed\n"
        f"  at:  {app.graph.sources[0].at}\n"
        "  fix: use a longer watermark, or late='keep' to land late rows aside"
    )
    assert verdicts(tmp_path) == {1: "ok"}


def test_a_batch_refused_for_late_rows_lands_once_they_are_allowed(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add(reading(2, "12:01:00"), reading(3, "11:00:00"))
    with raises("LATE_ROWS"):
        run(timed(source, late="fail"), tmp_path)

    run(timed(source), tmp_path)

    assert verdicts(tmp_path) == {1: "ok", 2: "ok", 3: "late"}


def test_a_retried_batch_lands_once(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    source.add(reading(2, "12:01:00"), "nonsense")
    app = timed(source)
    run(app, tmp_path)
    before = rows(tmp_path, "readings")

    forget_commit(tmp_path, "readings")
    events = run(app, tmp_path)

    assert rows(tmp_path, "readings") == before
    assert [event.kind for event in events] == ["started", "finished"]


def test_a_batch_that_would_land_fewer_rows_than_it_read_lands_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), reading(2, "12:01:00"))

    def losing(*arguments: Any) -> Staged:
        staged = stage(*arguments)
        return replace(staged, files=staged.files[1:])

    monkeypatch.setattr("millstream.landing.landing_sink.stage", losing)
    with raises("LANDING_UNBALANCED", match="read 2 rows and would land 0; nothing"):
        run(timed(source), tmp_path)
    monkeypatch.undo()

    assert verdicts(tmp_path) == {}
    run(timed(source), tmp_path)
    assert verdicts(tmp_path) == {1: "ok", 2: "ok"}


def test_a_retried_batch_with_other_rows_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = timed(source)
    run(app, tmp_path)
    (tmp_path / "sources" / "readings" / "00000000.json").write_text('{"id": 99}\n')

    forget_commit(tmp_path, "readings")
    events = run(app, tmp_path)

    assert verdicts(tmp_path) == {1: "ok"}
    assert [event.detail for event in events if event.kind == "differs"] == [
        "batch 0 gave other rows when it was retried; the first ones are kept"
    ]


def test_event_times_far_in_the_past_and_of_other_zones_land_exactly(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(
        {"id": 1, "at": "0001-01-01T00:00:00Z"}, {"id": 2, "at": "2026-05-01T14:00:00+02:00"}
    )
    source.add({"id": 3, "at": "2026-05-01T11:50:00Z"})

    run(timed(source), tmp_path)

    [_, second, third] = rows(tmp_path, "readings", "id", "at", "_verdict")
    assert second == (2, moment("12:00:00"), "ok")
    assert third == (3, moment("11:50:00"), "ok")
    assert verdicts(tmp_path)[1] == "rejected"


BATCHES = st.lists(st.lists(st.integers(0, 90), min_size=1, max_size=5), min_size=1, max_size=5)


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batches=BATCHES)
def test_lateness_follows_the_rule_whatever_the_order_and_the_cuts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]]
) -> None:
    home, source = tmp_path_factory.mktemp("home"), Memory(READING)
    told = [
        [
            reading(100 * b + n, f"{10 + minute // 60}:{minute % 60:02d}:00")
            for n, minute in enumerate(batch)
        ]
        for b, batch in enumerate(batches)
    ]
    for batch in told:
        source.add(*batch)

    run(timed(source), home)

    assert verdicts(home) == expected_verdicts(told)


def expected_verdicts(batches: list[list[dict[str, Any]]]) -> dict[int, str]:
    """Say the rule again, in plain Python."""
    found, greatest = {}, None
    for batch in batches:
        moments = {row["id"]: moment(row["at"][11:-1]) for row in batch}
        for number, happened in moments.items():
            late = greatest is not None and happened < greatest - timedelta(minutes=10)
            found[number] = "late" if late else "ok"
        greatest = max([*moments.values(), *([greatest] if greatest else [])])
    return found


def test_landing_records_where_a_row_came_from(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"), reading(2, "12:00:00"))
    source.add(reading(3, "12:00:00"))

    run(timed(source), tmp_path)

    assert rows(tmp_path, "readings", "id", "_origin", "_position") == [
        (1, "00000000.json", 1),
        (2, "00000000.json", 2),
        (3, "00000001.json", 1),
    ]
    assert at("12:00:00") == "2026-05-01T12:00:00Z"
