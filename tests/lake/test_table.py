from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F
from tests.apps import READING, app_of, forget_commit, moment, reading, rows, run, timed
from tests.faults import raises

from millstream.crash import armed
from millstream.errors import MillstreamError
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.app import App
    from millstream.lake.ledger import TableEntry

pytestmark = pytest.mark.spark

RULES = {"speed is positive": "speed > 0", "speed is plausible": "speed < 250"}


def entry(home: Path, name: str) -> TableEntry:
    [found] = [t for t in read_ledger(Home.at(home)).tables if t.name == name]
    return found


def test_an_update_table_keeps_the_last_answer_of_every_key_also_of_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory("vehicle STRING, at TIMESTAMP")
    at, later = "2026-05-01T12:00:10Z", "2026-05-01T12:01:10Z"
    source.add({"vehicle": "a", "at": at}, {"vehicle": None, "at": at}, {"vehicle": "b", "at": at})
    source.add(
        {"vehicle": "a", "at": at}, {"vehicle": None, "at": at}, {"vehicle": "a", "at": later}
    )
    app = timed(source)

    @app.table(mode="update", key=["vehicle", "window"])
    def per_minute(readings: DataFrame) -> DataFrame:
        return readings.groupBy("vehicle", F.window("at", "1 minute")).count()

    run(app, tmp_path)

    first = (moment("12:00:00"), moment("12:01:00"))
    second = (moment("12:01:00"), moment("12:02:00"))
    assert rows(tmp_path, "per_minute") == [
        ("a", first, 2),
        ("a", second, 1),
        ("b", first, 1),
        (None, first, 2),
    ]


def test_an_append_table_adds_and_a_complete_table_replaces(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00", 5.0), reading(2, "12:00:00", 7.0))
    source.add(reading(3, "12:01:00", 9.0))
    app = app_of(source)
    app.sql("fast", "SELECT id FROM readings WHERE speed > 6")
    app.sql("fastest", "SELECT max(speed) AS speed FROM readings", mode="complete")

    run(app, tmp_path)

    assert rows(tmp_path, "fast") == [(2,), (3,)]
    assert rows(tmp_path, "fastest") == [(9.0,)]


def test_a_partitioned_table_has_a_folder_of_values_for_every_partition_also_of_odd_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory("id BIGINT, place STRING, day DATE")
    places = ["a b", "50%", "x=y/z", "zürich", None]
    days = ["2026-05-01", "2026-05-02"]
    source.add(*({"id": n, "place": p, "day": days[n % 2]} for n, p in enumerate(places)))
    app = app_of(source)
    app.sql("visits", "SELECT day, id, place FROM readings", partition_by=["day", "place"])

    run(app, tmp_path)

    assert [row[1:] for row in rows(tmp_path, "visits", "day", "id", "place")] == [
        (0, "a b"),
        (2, "x=y/z"),
        (4, None),
        (1, "50%"),
        (3, "zürich"),
    ]
    held = app.read("visits")
    assert {(row.id, row.place) for row in held.collect()} == set(enumerate(places))
    assert held.where("place = '50%'").count() == 1
    assert DeltaTable(str(tmp_path / "tables" / "visits")).metadata().partition_columns == [
        "day",
        "place",
    ]


def ruled(source: Memory, **options: Any) -> App:
    app = app_of(source)
    app.sql("clean", "SELECT id, speed FROM readings", expect=RULES, **options)
    return app


def bad_rows() -> Memory:
    source = Memory(READING)
    source.add(reading(1, "12:00:00", 10.0), reading(2, "12:00:00", 900.0))
    source.add(reading(3, "12:00:00", -1.0), {"id": 4}, reading(5, "12:00:00", 20.0))
    return source


def test_rows_that_violate_a_rule_are_kept_aside_with_the_rules_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    run(ruled(bad_rows()), tmp_path)

    assert rows(tmp_path, "clean") == [(1, 10.0), (5, 20.0)]
    assert rows(tmp_path, "clean__quarantine", "id", "_rules") == [
        (2, ["speed is plausible"]),
        (3, ["speed is positive"]),
        (4, ["speed is positive", "speed is plausible"]),
    ]
    reported = entry(tmp_path, "clean")
    assert (reported.input, reported.written, reported.quarantined, reported.dropped) == (
        5,
        2,
        3,
        0,
    )
    assert reported.rules == {"speed is positive": 2, "speed is plausible": 2}


@pytest.mark.parametrize(
    ("policy", "kept", "dropped"), [("drop", [1, 5], 3), ("warn", [1, 2, 3, 4, 5], 0)]
)
def test_rows_that_violate_a_rule_are_dropped_or_let_through_and_counted(
    spark: SparkSession, tmp_path: Path, policy: Any, kept: list[int], dropped: int
) -> None:
    run(ruled(bad_rows(), on_violation=policy), tmp_path)

    assert [row[0] for row in rows(tmp_path, "clean", "id")] == kept
    assert not (tmp_path / "tables" / "clean__quarantine").exists()
    reported = entry(tmp_path, "clean")
    assert (reported.written, reported.quarantined, reported.dropped) == (len(kept), 0, dropped)
    assert reported.rules == {"speed is positive": 2, "speed is plausible": 2}
    assert reported.is_balanced


def test_a_rule_that_stops_the_table_leaves_nothing_of_the_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00", 10.0))
    run(ruled(source, on_violation="fail"), tmp_path)
    source.add(reading(2, "12:00:00", 10.0), reading(3, "12:00:00", -1.0))
    app = ruled(source, on_violation="fail")

    with raises("EXPECTATION_FAILED") as caught:
        run(app, tmp_path)

    assert str(caught.value) == (
        "[EXPECTATION_FAILED] batch 1 of 'clean' violates 'speed is positive' (1 rows); "
        "nothing of it was written\n"
        f"  at:  {app.graph.tables[0].at}\n"
        "  fix: correct the data or the rule, or keep such rows aside: on_violation='quarantine'"
    )
    assert rows(tmp_path, "clean") == [(1, 10.0)]
    assert entry(tmp_path, "clean").input == 1


def test_the_quarantine_of_a_complete_table_holds_the_last_answer_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00", -5.0), reading(2, "12:00:00", 5.0))
    source.add(reading(2, "12:00:00", 6.0))
    app = app_of(source)
    query = "SELECT id, max(speed) AS speed FROM readings GROUP BY id"
    app.sql("best", query, mode="complete", expect=RULES)

    run(app, tmp_path)
    assert rows(tmp_path, "best__quarantine", "id", "speed") == [(1, -5.0)]
    source.add(reading(1, "12:00:00", 7.0))
    run(app, tmp_path)

    assert rows(tmp_path, "best") == [(1, 7.0), (2, 6.0)]
    assert rows(tmp_path, "best__quarantine") == []
    assert entry(tmp_path, "best").is_balanced


@pytest.mark.parametrize("policy", ["quarantine", "drop"])
def test_a_key_whose_answer_comes_to_violate_a_rule_leaves_the_table_as_it_would_in_a_batch(
    spark: SparkSession, tmp_path: Path, policy: Any
) -> None:
    source = Memory(READING)
    app = app_of(source)
    query = "SELECT id, sum(speed) AS speed FROM readings GROUP BY id"
    app.sql("sums", query, mode="update", key=["id"], expect=RULES, on_violation=policy)
    source.add(*(reading(n, "12:00:00", 10.0) for n in (1, 2, 3)))
    run(app, tmp_path)

    source.add(reading(1, "12:00:00", 900.0), reading(2, "12:00:00", 1.0))
    run(app, tmp_path)
    assert rows(tmp_path, "sums") == [(2, 11.0), (3, 10.0)]
    source.add(reading(3, "12:00:00", -90.0))
    run(app, tmp_path)

    assert rows(tmp_path, "sums") == [(2, 11.0)]
    reported = entry(tmp_path, "sums")
    assert (reported.input, reported.written) == (6, 4)
    assert (reported.quarantined, reported.dropped) == (
        (2, 0) if policy == "quarantine" else (0, 2)
    )


def test_two_rows_for_one_key_are_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(
        reading(1, "12:00:00", 1.0), reading(1, "12:00:00", 2.0), reading(2, "12:00:00", -1.0)
    )
    app = app_of(source)
    query = "SELECT id, speed FROM readings"
    app.sql("latest", query, mode="update", key=["id"], expect=RULES)

    with raises("KEY_NOT_UNIQUE") as caught:
        run(app, tmp_path)

    assert str(caught.value) == (
        "[KEY_NOT_UNIQUE] batch 0 of 'latest' has several rows for one key (id); "
        "nothing of it was written\n"
        f"  at:  {app.graph.tables[0].at}\n"
        "  fix: aggregate or deduplicate by the key, or add columns to it"
    )
    assert rows(tmp_path, "latest") == []
    assert rows(tmp_path, "latest__quarantine") == []


def test_a_changed_type_is_refused_with_the_column_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00"))
    first, second = app_of(source), app_of(source)
    first.sql("speeds", "SELECT id, speed FROM readings")
    second.sql("speeds", "SELECT id, CAST(speed AS INT) AS speed FROM readings")
    run(first, tmp_path)

    with raises("SCHEMA_CHANGED") as caught:
        run(second, tmp_path)

    assert (
        caught.value.what
        == "column 'speed' of 'speeds' is DOUBLE in the table and INTEGER in the answer"
    )
    assert caught.value.at == second.graph.tables[0].at
    assert rows(tmp_path, "speeds") == [(1, 1.0)]


def test_an_added_column_is_refused_unless_asked_for_and_readers_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)

    def app(query: str, **options: Any) -> App:
        app = app_of(source)
        app.sql("speeds", query, **options)
        app.sql("copy", "SELECT id FROM speeds")
        app.sql("total", "SELECT count(*) AS n FROM speeds", mode="complete")
        return app

    source.add(reading(1, "12:00:00", 3.0))
    run(app("SELECT id, speed FROM readings"), tmp_path)
    source.add(reading(2, "12:00:00", 4.0))
    wider = "SELECT id, speed, speed * 2 AS twice FROM readings"

    with raises("COLUMN_ADDED", match="the column 'twice', which the table lacks"):
        run(app(wider), tmp_path)
    run(app(wider, evolve=True), tmp_path)

    assert rows(tmp_path, "speeds") == [(1, 3.0, None), (2, 4.0, 8.0)]
    assert rows(tmp_path, "copy") == [(1,), (2,)]
    assert rows(tmp_path, "total") == [(2,)]


def test_a_new_reader_of_a_table_that_gained_a_column_reads_all_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    narrow, wide = app_of(source), app_of(source)
    narrow.sql("speeds", "SELECT id, speed FROM readings")
    wide.sql("speeds", "SELECT id, speed, speed * 2 AS twice FROM readings", evolve=True)
    wide.sql("doubled", "SELECT id, twice FROM speeds")
    source.add(reading(1, "12:00:00", 3.0))
    run(narrow, tmp_path)

    source.add(reading(2, "12:00:00", 4.0))
    run(wide, tmp_path)

    assert rows(tmp_path, "doubled") == [(1, None), (2, 8.0)]


def test_an_update_table_may_gain_a_column(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    narrow, wide = app_of(source), app_of(source)
    query = "SELECT id, max(speed) AS speed FROM readings GROUP BY id"
    narrow.sql("best", query, mode="update", key=["id"])
    wide.sql(
        "best",
        f"SELECT *, speed * 2 AS twice FROM ({query})",
        mode="update",
        key=["id"],
        evolve=True,
    )
    source.add(reading(1, "12:00:00", 3.0), reading(2, "12:00:00", 3.0))
    run(narrow, tmp_path)

    source.add(reading(1, "12:00:00", 4.0))
    run(wide, tmp_path)

    assert rows(tmp_path, "best") == [(1, 4.0, 8.0), (2, 3.0, None)]


def test_a_table_over_one_that_changes_is_recomputed(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    app = app_of(source)
    app.sql(
        "best",
        "SELECT id, max(speed) AS speed FROM readings GROUP BY id",
        mode="update",
        key=["id"],
    )
    app.sql("sum", "SELECT sum(speed) AS speed FROM best", mode="complete")
    source.add(reading(1, "12:00:00", 3.0), reading(2, "12:00:00", 4.0))
    run(app, tmp_path)
    assert rows(tmp_path, "sum") == [(7.0,)]

    source.add(reading(1, "12:00:00", 10.0))
    run(app, tmp_path)

    assert rows(tmp_path, "sum") == [(14.0,)]


def test_sql_and_python_give_the_same_answer_and_views_are_inlined(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    source.add(*(reading(n, f"12:00:{n:02d}", float(n)) for n in range(10)))
    app = timed(source)

    @app.view
    def moving(readings: DataFrame) -> DataFrame:
        return readings.where("speed > 0")

    app.sql_view("fast", "SELECT * FROM moving WHERE speed > 4")

    @app.table()
    def by_python(fast: DataFrame) -> DataFrame:
        return fast.select("id", (F.col("speed") * 2).alias("twice"))

    app.sql(
        "by_sql",
        "WITH doubled AS (SELECT id, speed * 2 AS twice FROM fast) SELECT id, twice FROM doubled",
    )

    run(app, tmp_path)

    assert rows(tmp_path, "by_python") == [(n, n * 2.0) for n in range(5, 10)]
    assert rows(tmp_path, "by_sql") == rows(tmp_path, "by_python")
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [
        "by_python",
        "by_sql",
        "readings",
    ]


def test_a_retried_batch_of_every_mode_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    source.add(reading(1, "12:00:00", 3.0), reading(2, "12:00:00", -4.0))
    app = app_of(source)
    app.sql("added", "SELECT id, speed FROM readings", expect=RULES)
    counted = "SELECT id, count(*) AS n FROM readings GROUP BY id"
    app.sql("updated", counted, mode="update", key=["id"])
    app.sql("replaced", counted, mode="complete")

    def die(point: str, query: str, _: int) -> None:
        if (point, query) == ("quarantine_commit", "added"):
            raise InterruptedError

    with armed(tmp_path, die), pytest.raises(MillstreamError, match="InterruptedError"):
        run(app, tmp_path)
    assert rows(tmp_path, "added__quarantine", "id") == [(2,)]
    run(app, tmp_path)

    for name in ("added", "updated", "replaced"):
        forget_commit(tmp_path, name)
    events = run(app, tmp_path)

    assert rows(tmp_path, "added") == [(1, 3.0)]
    assert rows(tmp_path, "added__quarantine", "id") == [(2,)]
    assert rows(tmp_path, "updated") == rows(tmp_path, "replaced") == [(1, 1), (2, 1)]
    assert not [event for event in events if event.kind == "differs"]
