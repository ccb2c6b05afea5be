"""The model learns from rooms with a counter, scores the others, and notices a new season."""

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
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_rooms_without_a_counter_are_scored_and_a_new_season_is_noticed(
    stream: Callable[..., Script],
) -> None:
    dice, season = random.Random(1), 600

    def send(first: int, last: int) -> None:
        for number in range(first, last):
            is_occupied = number % 3 == 0
            lamp = 400.0 * is_occupied if number < season else 400.0 * (not is_occupied)
            s.send(
                "readings",
                room=f"room-{number % 20:02d}",
                at=(NOON + timedelta(milliseconds=100 * number)).isoformat(),
                light=100 + lamp + dice.random(),
                co2=500 + dice.random(),
                temperature=21.0,
                occupied=is_occupied if number % 20 < 10 else None,
            )

    with stream(load(APP)) as s:
        send(0, 400)
        s.batch()
        send(400, 800)
        s.crash(after="sink_commit", query="occupancy")
        s.restart()
        send(800, 1200)
        s.batch()
        s.batch()

        scored = s.table("occupancy").rows("at", "occupied", "prediction", "_learnt")
        late = [row for row in scored if row["occupied"] is not None and 100 < row["_learnt"] < 150]
        assert sum(row["occupied"] == row["prediction"] for row in late) > 0.9 * len(late) > 0
        assert [row for row in scored if row["occupied"] is None and row["prediction"]]
        assert len(s.table("rooms").rows()) == 20
        [*changes] = s.table("season_changed").rows("_learnt")
        assert changes
        assert all(row["_learnt"] > season / 2 for row in changes)
        s.assert_consistent()
