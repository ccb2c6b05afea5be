"""A click within an hour, whichever of the two comes first."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
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


def test_the_click_through_rate_of_each_campaign_is_learnt(stream: Callable[..., Script]) -> None:
    rates, dice = {"boots": 0.05, "coffee": 0.4}, random.Random(1)
    with stream(load(APP)) as s:
        for number in range(600):
            campaign, shown = dice.choice(("boots", "coffee")), at("09:00:00")
            shown += timedelta(seconds=30 * number)
            s.send("impressions", impression=number, campaign=campaign, at=shown.isoformat())
            if dice.random() < rates[campaign]:
                clicked = (shown + timedelta(minutes=dice.randrange(50))).isoformat()
                s.send("clicks", impression=number, at=clicked)
            if number % 200 == 199:
                s.batch()
        for source in ("impressions", "clicks"):
            more = {"campaign": "boots"} if source == "impressions" else {}
            s.send(source, impression=999, at="23:00:00", **more)
        s.crash(after="sink_commit", query="rate")
        s.restart()
        s.drain()

        rows = s.table("rate").rows("campaign", "score", "_learnt", "_kind")
        scored = [row for row in rows if row[3] == "scored" and row[2] >= 400]
        for campaign, rate in rates.items():
            scores = [row[1] for row in scored if row[0] == campaign]
            assert sum(abs(score - rate) < 0.1 for score in scores) == len(scores) > 0
        assert s.table("expected").rows("expected")
        s.assert_consistent()
