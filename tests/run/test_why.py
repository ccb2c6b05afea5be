"""What `millstream why` says a window waits for, against what Spark does with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import pytest
from pyspark.sql import DataFrame, functions as F

import millstream as ms
from millstream.lake.home import Home
from millstream.views.why import SourceTimeView, WhyView, advised_idle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.testing import Script
    from millstream.views.why import ClosingView

    Stream = Callable[..., Script]

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
US = timedelta(microseconds=1)


def counting(*, mode: Literal["append", "update"] | None = None) -> ms.App:
    """An app that counts clicks by minute, or without a mode only lands them."""
    app = ms.App("visits")

    @app.source(event_time="at", watermark="1 minute")
    def clicks() -> ms.Memory:
        return ms.Memory("id BIGINT, at TIMESTAMP")

    def per_minute(clicks: DataFrame) -> DataFrame:
        return clicks.groupBy(F.window("at", "1 minute").alias("window")).count()

    if mode is not None:
        app.table(mode=mode, key=["window"] if mode == "update" else [])(per_minute)
    return app


def closing_of(app: ms.App, home: Path, name: str = "per_minute") -> ClosingView:
    [closing] = WhyView.of(Home.at(home), app.graph, name).closing
    return closing


def send(script: Script, *moments: datetime) -> None:
    for moment in moments:
        script.send("clicks", id=1, at=f"{moment:%H:%M:%S.%f}")
    script.batch()


def ends_in(script: Script) -> list[datetime]:
    return [end for (end,) in script.table("per_minute").rows("window.end")]


def test_a_window_comes_with_the_event_that_it_needs_and_with_none_before(
    stream: Stream, home: Path
) -> None:
    app = counting(mode="append")
    with stream(app, home=home) as s:
        send(s, NOON - 1.5 * MINUTE, NOON - 0.5 * MINUTE, NOON)
        for later in ("01:59.999", "02:00", "02:00.000999", "02:00.001", "02:00.001001", "03:00"):
            event = datetime.fromisoformat(f"2026-01-01T12:{later}+00:00")
            reported = closing_of(app, home)

            send(s, event)

            assert (reported.ends in ends_in(s)) == (event >= reported.needs), (event, reported)
            assert closing_of(app, home).ends not in ends_in(s), event

        assert ends_in(s) == [NOON - MINUTE, NOON, NOON + MINUTE]
        reported = closing_of(app, home)
        send(s, reported.needs - US)
        assert reported.ends not in ends_in(s)
        send(s, reported.needs)
        assert reported.ends in ends_in(s)


def test_a_table_that_never_ran_waits_for_the_window_at_the_frontier_of_its_source(
    stream: Stream, home: Path
) -> None:
    app = counting(mode="append")
    with stream(counting(), home=home) as s:
        send(s, NOON, NOON + 2 * MINUTE)

        reported = closing_of(app, home)
        s.upgrade_to(app)
        s.batch()

        assert ends_in(s) == []
        assert reported == closing_of(app, home)
        assert reported.ends == NOON + MINUTE


def test_a_window_that_is_updated_is_final_once_any_row_of_it_is_late(
    stream: Stream, home: Path
) -> None:
    app = counting(mode="update")
    with stream(app, home=home) as s:
        send(s, NOON)
        reported = closing_of(app, home)

        send(s, reported.needs - US)
        assert closing_of(app, home).ends == reported.ends
        send(s, reported.ends - US)
        assert s.verdicts("clicks") == {"ok": 3}
        send(s, reported.needs)
        assert closing_of(app, home).ends == reported.ends + MINUTE
        send(s, reported.ends - US)

        assert s.verdicts("clicks") == {"ok": 4, "late": 1}


def test_what_waits_for_more_comes_with_the_event_that_it_needs_and_with_none_before(
    stream: Stream, home: Path
) -> None:
    app = ms.App("shop")
    app.source(name="clicks", event_time="at", watermark="1 minute")(
        lambda: ms.Memory("id BIGINT, at TIMESTAMP")
    )
    order = ms.pattern(key="id", within="2 hours").step("placed", "id = 1")
    app.table(name="missed")(lambda clicks: ms.absent(clicks, order.step("shipped", "id = 2")))
    with stream(app, home=home) as s:
        send(s, NOON - 5 * MINUTE)
        send(s, NOON + 500 * US)
        s.batch()
        reported = closing_of(app, home, "missed")

        before = s.table("missed").rows()
        send(s, reported.needs - US)
        assert len(s.table("missed").rows()) == len(before) + 1
        send(s, reported.needs)

        assert len(s.table("missed").rows()) == len(before) + 2


@pytest.mark.parametrize("lag", [11 * MINUTE, 11 * MINUTE + US, timedelta(days=300)])
def test_idle_is_advised_where_rows_like_the_last_ones_would_not_become_late(
    stream: Stream, lag: timedelta
) -> None:
    app = ms.App("visits")
    app.source(name="clicks", event_time="at", watermark="1 minute", idle="10 minutes")(
        lambda: ms.Memory("id BIGINT, at TIMESTAMP")
    )
    with stream(app) as s:
        came, event = s.now, s.now - lag
        s.send("clicks", id=1, at=event.isoformat())
        s.batch()
        s.advance("10 minutes")
        s.batch()
        s.send("clicks", id=2, at=(s.now - lag).isoformat())
        s.batch()

        source = SourceTimeView("clicks", "ran", "1 minute", None, None, event, came)
        is_advised = advised_idle(source, came + 10 * MINUTE) is not None
        assert s.verdicts("clicks") == ({"ok": 2} if is_advised else {"ok": 1, "late": 1})
        assert is_advised == (lag == 11 * MINUTE)
