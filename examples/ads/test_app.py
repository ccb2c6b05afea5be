"""A click within an hour, whichever of the two comes first."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{clock}").replace(tzinfo=UTC)


def test_an_impression_is_reported_with_its_click_or_when_it_can_have_none(
    stream: Callable[..., Script],
) -> None:
    def shown(number: int, at: str) -> None:
        s.send("impressions", impression=number, campaign="boots", at=at)

    with stream(load(APP)) as s:
        s.send("clicks", impression=1, at="11:00:00")
        shown(2, "10:20:00")
        shown(3, "10:20:00")
        s.batch()
        shown(1, "10:00:00")
        s.send("clicks", impression=2, at="11:20:00.001")
        s.send("clicks", impression=1, at="10:10:00")
        s.batch()
        assert s.table("answered").rows("impression") == [(1,), (1,)]
        assert s.table("outcome").rows("impression") == [(1,), (1,)]
        assert s.table("by_campaign").rows() == []

        shown(4, "16:00:00")
        s.send("clicks", impression=4, at="15:00:00")
        s.batch()

        assert s.table("outcome").rows("impression", "at_right") == [
            (1, at("10:10:00")),
            (1, at("11:00:00")),
            (2, None),
            (3, None),
        ]
        quarters = s.table("by_campaign").rows("shown", "clicked")
        assert quarters == [(1, 1), (2, 0)]
        s.assert_consistent()


def test_a_user_who_has_seen_a_campaign_too_often_is_capped(stream: Callable[..., Script]) -> None:
    with stream(load(APP)) as s:
        for number in range(40):
            user = "ann" if number % 2 else f"u{number}"
            clock = f"10:{number:02d}:00"
            s.send("impressions", impression=number, campaign="boots", user=user, at=clock)
            if number == 20:
                s.crash(after="sink_commit", query="shown_to")
                s.restart()
        s.drain()

        assert s.table("capped").rows("campaign", "user", "at_least") == [("boots", "ann", 20)]
        s.assert_consistent()
