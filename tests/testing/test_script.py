from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, functions as F
from tests.faults import raises

import millstream as ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing import Script

    Stream = Callable[..., Script]

pytestmark = pytest.mark.spark


def visits() -> ms.App:
    app = ms.App("visits")

    @app.source(event_time="at", watermark="10 minutes")
    def clicks() -> ms.Memory:
        return ms.Memory("user STRING, at TIMESTAMP, page STRING")

    @app.table(mode="update", key=["user", "minute"])
    def per_minute(clicks: DataFrame) -> DataFrame:
        minute = F.window("at", "1 minute").start.alias("minute")
        return clicks.groupBy("user", minute).agg(F.count("*").alias("clicks"))

    return app


def test_a_script_needs_no_folder_that_the_app_reads(stream: Stream) -> None:
    app = ms.App("visits")
    app.source(name="clicks")(lambda: ms.Files("/nowhere/at/all", schema="user STRING"))

    with stream(app) as s:
        s.send("clicks", user="ann")
        s.drain()

        assert s.verdicts("clicks") == {"ok": 1}
    assert [fault.code for fault in app.faults] == ["PATH_MISSING"]


def test_a_late_click_is_kept_aside(stream: Stream) -> None:
    with stream(visits()) as s:
        s.send("clicks", at="12:00:03", user="ann", page="/")
        s.batch()
        s.send("clicks", at="11:40:00", user="bob", page="/")
        s.crash(after="sink_commit")
        s.restart()
        s.advance("30 minutes")
        s.drain()

        assert s.table("per_minute").rows("user", "clicks") == [("ann", 1)]
        assert s.verdicts("clicks") == {"ok": 1, "late": 1}
        s.assert_consistent()


def test_the_clock_of_the_queries_is_the_script_s(stream: Stream) -> None:
    app = ms.App("times")
    app.source(name="words")(lambda: ms.Memory("word STRING"))

    @app.table()
    def said(words: DataFrame) -> DataFrame:
        return words.withColumn("at", F.date_format(F.current_timestamp(), "HH:mm"))

    with stream(app) as s:
        s.send("words", word="one")
        s.batch()
        s.advance("90 minutes")
        s.send("words", word="two")
        s.batch()

        assert s.table("said").rows("word", "at") == [("one", "12:00"), ("two", "13:30")]


def test_a_row_is_judged_by_the_time_it_arrives_in_the_script(stream: Stream) -> None:
    with stream(visits()) as s:
        s.send("clicks", at="2026-01-03T12:00:00Z", user="ann", page="/")
        s.batch()
        s.advance("2 days")
        s.send("clicks", at="2026-01-03T12:00:00Z", user="ann", page="/")
        s.batch()

        assert s.verdicts("clicks") == {"ok": 1, "future": 1}


def test_a_trigger_waits_for_the_script_s_clock(stream: Stream) -> None:
    app = ms.App("slow")
    app.source(name="words")(lambda: ms.Memory("word STRING"))
    app.table(name="copied", trigger="10 minutes")(lambda words: words)

    with stream(app) as s:
        s.send("words", word="one")
        s.batch()
        s.send("words", word="two")
        s.advance("9 minutes")
        s.batch()
        assert s.table("copied").rows() == [("one",)]

        s.advance("1 minute")
        s.batch()
        assert s.table("copied").rows() == [("one",), ("two",)]


def test_an_upgrade_goes_on_where_the_old_version_ended(stream: Stream) -> None:
    def version(loud: bool) -> ms.App:
        app = ms.App("shout")
        app.source(name="words")(lambda: ms.Memory("word STRING"))
        app.table(name="said")(
            lambda words: words.select(F.upper("word").alias("word")) if loud else words
        )
        return app

    with stream(version(loud=False)) as s:
        s.send("words", word="one")
        s.batch()
        s.upgrade_to(version(loud=True))
        s.send("words", word="two")
        s.batch()

        assert s.table("said").rows() == [("TWO",), ("one",)]


def test_once_runs_may_come_between(stream: Stream) -> None:
    with stream(visits()) as s:
        s.send("clicks", at="12:00:03", user="ann", page="/")
        s.run_once()
        s.send("clicks", at="12:00:04", user="ann", page="/")
        s.batch()

        assert s.table("per_minute").rows("clicks") == [(2,)]


def test_a_raw_record_gets_its_verdict(stream: Stream) -> None:
    with stream(visits()) as s:
        s.send("clicks", '{"user": 7}', "no JSON at all")
        s.batch()

        assert s.verdicts("clicks") == {"malformed": 2}


def test_tables_without_rows_are_compared_too_whatever_columns_they_have(stream: Stream) -> None:
    app = ms.App("lists")
    app.source(name="words", event_time="at", watermark="1 minute")(
        lambda: ms.Memory("word STRING, at TIMESTAMP")
    )
    app.table(name="per_minute")(
        lambda words: words.groupBy(F.window("at", "1 minute")).agg(
            F.collect_set("word").alias("said")
        )
    )
    app.table(name="copied")(lambda per_minute: per_minute)

    with stream(app) as s:
        s.send("words", word="one", at="12:00:00")
        s.batch()

        s.assert_consistent()
        assert s.table("copied").rows() == []


def test_bad_use_is_reported_with_a_fix(stream: Stream) -> None:
    with stream(visits()) as s:
        with raises("UNKNOWN_IN_SCRIPT", match="has no source 'click'") as reported:
            s.send("click", user="ann")
        assert reported.value.fix.startswith("did you mean 'clicks'?")
        with raises("UNKNOWN_IN_SCRIPT", match="has no column 'usr'"):
            s.send("clicks", usr="ann")
        with raises("UNKNOWN_IN_SCRIPT", match="has no table 'per_hour'"):
            s.table("per_hour")
        with raises("UNKNOWN_IN_SCRIPT", match="has no query 'per_hour'"):
            s.crash(after="sink_commit", query="per_hour")
        with raises("CLOCK_BACKWARDS"):
            s.advance("-5 minutes")
        with raises("UNKNOWN_CRASH_POINT") as unknown:
            s.crash(after="sink_comit")
        assert unknown.value.fix.startswith("did you mean 'sink_commit'?")
        with raises("CRASH_NOT_REACHED"):
            s.crash(after="quarantine_commit")
        s.crash()
        with raises("DRIVER_DEAD", match=r"batch\(\) needs a driver"):
            s.batch()


def test_python_that_starts_too_late_is_started_again(
    stream: Stream, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ms.App("counted")
    app.source(name="words")(lambda: ms.Memory("word STRING"))

    @ms.stateful(key="word", state="n BIGINT", emits="word STRING, n BIGINT", order="arrival")
    def count(
        word: str, rows: tuple[Any, ...], state: Any, _timer: ms.Timer
    ) -> Iterator[tuple[str, int]]:
        state.n = (state.n or 0) + len(rows)
        yield word, state.n

    @app.table()
    def counts(words: DataFrame) -> DataFrame:
        return count(words)

    began, slow = tmp_path / "began", tmp_path / "python"
    slow.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *driver_worker*) [ -e {began} ] || {{ touch {began}; sleep 11; }};; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))

    with stream(app) as s:
        s.send("words", word="mill")
        s.batch()

        assert began.exists()
        assert s.table("counts").rows("word", "n") == [("mill", 1)]


def test_a_row_of_a_script_may_have_the_event_time_or_what_it_is_computed_from(
    stream: Stream,
) -> None:
    app = ms.App("visits")
    app.source(name="clicks", event_time="timestamp_millis(ms)", watermark="1 minute")(
        lambda: ms.Memory("ms BIGINT, user STRING")
    )

    @app.table
    def per_minute(clicks: DataFrame) -> DataFrame:
        return clicks.groupBy(F.window("event_time", "1 minute")).agg(F.count("*").alias("n"))

    with stream(app) as s:
        noon_ms = int(s.now.timestamp() * 1000)
        s.send("clicks", user="ann", at="12:00:05")
        s.send("clicks", user="bob", ms=noon_ms + 6_000)
        s.send("clicks", user="eve")
        s.batch()
        s.send("clicks", user="ann", at="12:05:00")
        s.batch()

        assert s.verdicts("clicks") == {"ok": 3, "malformed": 1}
        assert s.table("per_minute").rows("n") == [(2,)]
        s.assert_consistent()


def shop() -> ms.App:
    app = ms.App("shop")
    app.source(name="orders")(lambda: ms.Memory("id BIGINT, item STRING, price DOUBLE"))

    @app.table(expect={"price is positive": "price > 0"})
    def priced(orders: DataFrame) -> DataFrame:
        return orders

    @app.table(mode="update", key=["item"], expect={"is rare": "orders < 2"})
    def rare(orders: DataFrame) -> DataFrame:
        return orders.groupBy("item").agg(F.count("*").alias("orders"))

    @app.table(mode="complete", expect={"has a name": "item IS NOT NULL"})
    def totals(orders: DataFrame) -> DataFrame:
        return orders.groupBy("item").agg(F.sum("price").alias("total"))

    def checked(row: Any) -> dict[str, Any]:
        return {"share": 1 / row.price}

    @app.table()
    def shares(orders: DataFrame) -> DataFrame:
        return ms.add_columns(orders, checked, "share DOUBLE", on_error="quarantine")

    return app


def ordered(s: Script) -> None:
    """Send orders in three batches; some break a rule, or make a function raise."""
    for number, price in enumerate((-1.0, 2.0, 0.0)):
        s.send("orders", id=number, item="pen", price=price)
        s.send("orders", id=10 + number, item=None, price=1.0)
        s.batch()


def test_quarantines_are_consistent_over_crashes(stream: Stream) -> None:
    with stream(shop()) as s:
        ordered(s)
        for query, price in (("priced", 0.0), ("shares", None)):
            s.send("orders", id=7, item="pen", price=price)
            s.crash(after="quarantine_commit", query=query)
            s.restart()
        s.drain()

        s.assert_consistent()
        assert len(s.table("priced__quarantine").rows()) == 4


def test_quarantines_that_have_a_row_twice_are_not_consistent(stream: Stream) -> None:
    tables = ("priced", "shares", "totals")
    with stream(shop()) as s:
        ordered(s)
        for table in tables:
            path = str(s._home.quarantine(table))
            write_deltalake(path, DeltaTable(path).to_pyarrow_table()[:1], mode="append")

        with raises("NOT_PREFIX_CONSISTENT") as caught:
            s.assert_consistent()

    extra = [
        f"{table}__quarantine has, and should not, Row(" in str(caught.value) for table in tables
    ]
    assert extra == [True] * 3


def test_quarantines_that_lack_a_row_are_not_consistent(stream: Stream) -> None:
    tables = ("priced", "shares", "totals", "rare")
    with stream(shop()) as s:
        ordered(s)
        for table in tables:
            DeltaTable(str(s._home.quarantine(table))).delete()

        with raises("NOT_PREFIX_CONSISTENT") as caught:
            s.assert_consistent()

    assert [f"{table}__quarantine lacks Row(" in str(caught.value) for table in tables] == [
        True
    ] * 4
