"""Tables between: their rows come in another order of event time than those they are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.faults import raises

import millstream as ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

pytestmark = pytest.mark.spark


def app_with(between: Callable[[DataFrame], DataFrame]) -> ms.App:
    """An app that counts by minute what a table makes from payments, and that another passes on."""
    app = ms.App("between")

    @app.source(event_time="at", watermark="10 seconds")
    def payments() -> ms.Memory:
        return ms.Memory("card STRING, at TIMESTAMP, amount INT")

    @app.table()
    def found(payments: DataFrame) -> DataFrame:
        return between(payments)

    @app.table()
    def passed(found: DataFrame) -> DataFrame:
        return found.where("card IS NOT NULL")

    @app.table()
    def per_minute(passed: DataFrame) -> DataFrame:
        return passed.groupBy(F.window("at", "1 minute")).count()

    return app


def small_then_big(payments: DataFrame) -> DataFrame:
    pattern = ms.pattern(key="card", within="1 hour").step("small", "amount < 1")
    return ms.match(payments, pattern.step("big", "amount > 100"), select="card, small.at AS at")


def by_beginning(payments: DataFrame) -> DataFrame:
    visits = payments.groupBy("card", F.session_window("at", "10 minutes").alias("visit")).count()
    return visits.select("card", F.col("visit.start").alias("at"))


def test_what_is_reported_long_after_it_began_is_not_late_to_who_reads_it(
    stream: Callable[..., Script],
) -> None:
    with stream(app_with(small_then_big)) as s:
        s.send("payments", card="slow", at="12:00:00", amount=0)
        s.send("payments", card="quick", at="12:30:00", amount=0)
        s.send("payments", card="quick", at="12:31:00", amount=500)
        s.batch()
        s.send("payments", card="slow", at="12:50:00", amount=500)
        s.batch()
        s.restart()
        s.send("payments", card="other", at="15:00:00", amount=5)
        s.batch()
        s.drain()

        counted = s.table("per_minute").rows("window.start", "count")
        assert [(start.minute, count) for start, count in counted] == [(0, 1), (30, 1)]
        s.assert_consistent()


def test_rows_that_spark_would_drop_stop_the_table_before_it_loses_them(
    stream: Callable[..., Script],
) -> None:
    with stream(app_with(by_beginning)) as s:
        for minute in range(0, 40, 5):
            s.send("payments", card="long", at=f"12:{minute:02d}:00", amount=1)
        s.send("payments", card="short", at="12:20:00", amount=1)
        s.batch()
        s.send("payments", card="late", at="12:46:00", amount=1)

        with raises("ROWS_BEHIND", match="rows of 'passed' \\(1 in this batch\\)"):
            s.batch()
        assert s.table("per_minute").rows() == []
