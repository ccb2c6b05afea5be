from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, functions as F
from pyspark.sql.types import LongType, StructType, TimestampType
from tests.faults import raises

import millstream as ms
from millstream.cli.backtest import show
from millstream.errors import MillstreamError
from millstream.lake.home import Home
from millstream.trial.backtest import Backtest, LandedHistory, time_column
from millstream.views.backtest import BacktestView

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing import Script

    Stream = Callable[..., Script]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def bank() -> ms.App:
    """Payments, of which some are large; orders of which some are not shipped in an hour."""
    app = ms.App("bank")

    @app.source(event_time="at", watermark="1 minute")
    def payments() -> object:
        return ms.Memory("card STRING, kind STRING, amount BIGINT, at TIMESTAMP")

    @app.source(live=True)
    def clicks() -> object:
        return ms.Rate(1)

    @app.table(expect={"has a card": "card IS NOT NULL"})
    def sound(payments: DataFrame) -> DataFrame:
        return payments.where("amount > 0")

    @app.view
    def large(sound: DataFrame) -> DataFrame:
        return sound.where("amount > 100").select("card", "amount", "at")

    @app.view
    def missed(sound: DataFrame) -> DataFrame:
        shipped = ms.pattern(key="card", within="1 hour")
        shipped = shipped.step("placed", "kind = 'placed'").step("shipped", "kind = 'shipped'")
        return ms.absent(sound, shipped, select="card, placed.at AS at")

    @app.view
    def halves(sound: DataFrame) -> DataFrame:
        return sound.groupBy(F.window("at", "30 seconds")).count()

    @app.view
    def totals(sound: DataFrame) -> DataFrame:
        return sound.groupBy("card").agg(F.sum("amount").alias("amount"))

    @app.view
    def clicked(clicks: DataFrame) -> DataFrame:
        return clicks

    return app


def refusal(history: LandedHistory, name: str, **options: str) -> str:
    with pytest.raises(MillstreamError) as raised:
        history.backtest(name, **options)  # type: ignore[arg-type]
    return raised.value.code


def at_(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return NOON.replace(hour=hour, minute=minute, second=second)


def test_an_answer_is_counted_over_all_that_is_landed(
    stream: Stream, spark: SparkSession, home: Path
) -> None:
    app = bank()
    with stream(app, home=home) as script:
        for card, kind, amount, at in (
            ("a", "placed", 500, "12:00:10"),
            ("a", "shipped", 5, "12:30:00"),
            ("b", "placed", 300, "12:00:20"),
            (None, "placed", 900, "12:10:00"),
            ("c", "placed", 0, "12:10:00"),
            ("a", "other", 5, "13:59:10"),
            ("b", "other", 200, "14:00:00"),
            ("d", "placed", 700, "14:00:30"),
        ):
            script.send("payments", card=card, kind=kind, amount=amount, at=at)
        script.batch()
    history = LandedHistory(app.graph, spark, Home.at(home))

    large = history.backtest("large", rows=2)
    missed = history.backtest("missed", per="hour")
    halves = history.backtest("halves", per="minute")
    totals = history.backtest("totals")

    assert (large.rows, large.by, large.per) == (4, "at", "minute")
    assert (large.since, large.until) == (NOON + timedelta(seconds=10), at_(14, 0, 30))
    assert large.counts == ((NOON, 2), (at_(14), 2))
    assert [row[:2] for row in large.sample] == [("d", 700), ("b", 200)]
    assert missed.counts == ((NOON, 1),), "what is not over yet has not failed to come"
    assert halves.counts == ((NOON, 1), (at_(12, 30), 1)), "at 13:59:30 a row may still come"
    assert (totals.rows, totals.by, totals.counts) == (3, None, ())
    assert refusal(history, "lage") == "UNKNOWN_DATASET"
    assert refusal(history, "payments") == "NOTHING_TO_BACKTEST"
    assert refusal(history, "clicked") == "LIVE_IN_BATCH"
    assert refusal(history, "large", by="card") == "BACKTEST_TIME"


def test_rows_are_counted_by_their_event_time_a_window_or_whatever_time_they_have() -> None:
    window = StructType().add("start", TimestampType()).add("end", TimestampType())
    schema = StructType().add("n", LongType()).add("seen", TimestampType()).add("window", window)

    assert time_column("t", schema, None, ["at"]) == "window"
    assert time_column("t", schema, None, ["seen"]) == "seen"
    assert time_column("t", schema, "seen", []) == "seen"
    assert time_column("t", StructType().add("n", LongType()), None, ["n"]) is None
    with raises("BACKTEST_TIME"):
        time_column("t", schema, "n", [])


def test_what_would_have_come_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    counts = tuple((NOON + timedelta(days=n), n + 1) for n in range(3))
    sample = (("ann", NOON),)
    found = Backtest(6, NOON, NOON + timedelta(days=4), "at", "day", counts, ("who", "at"), sample)

    show(BacktestView.of("bank", "large", found))

    reported = capsys.readouterr().out.splitlines()
    assert reported[0] == (
        "large: 6 rows over 2026-01-01 12:00 to 2026-01-05 12:00, 1.5 a day, in 3 days"
    )
    assert [line.split() for line in reported[2:6]] == [
        ["day", "rows"],
        ["2026-01-01", "1", "█" * 13],
        ["2026-01-02", "2", "█" * 27],
        ["2026-01-03", "3", "█" * 40],
    ]
    assert reported[7] == "  the last 1 row:"
    show(BacktestView.of("bank", "totals", Backtest(0, None, None, None, "day", (), ("n",), ())))
    assert (
        capsys.readouterr().out == "totals: 0 rows\n  it has no time that it could be counted by\n"
    )
