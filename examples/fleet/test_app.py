"""The fleet under a script: cars report, drive too fast, and fall silent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def position(car: str, at: str, speed: float) -> dict[str, object]:
    return {"car": car, "at": at, "lat": 52.5, "lon": 13.4, "speed": speed, "fuel": 40.0}


def test_cars_that_drive_too_fast_or_fall_silent_are_reported_and_faults_hold_nobody_back(
    stream: Callable[..., Script],
) -> None:
    with stream(load(APP)) as s:
        for at, speed in (("12:00:05", 131.0), ("12:00:20", 140.0), ("12:00:10", 135.0)):
            s.send("positions", **position("a", at, speed))
        s.send("positions", **position("b", "12:00:30", 999.0))
        s.send("faults", car="a", at="12:00:15", code="P0300")
        s.batch()

        s.advance("4 minutes")
        s.send("positions", **position("b", "12:03:30", 50.0))
        s.send("positions", **position("b", "12:03:30", 50.0))
        s.crash(after="sink_commit", query="condition")
        s.restart()
        s.batch()

        [fast] = s.table("speeding").rows("car", "fastest")
        assert fast == ("a", 140.0)
        assert s.table("silent").rows("car") == [("a",)]
        assert [r[0] for r in s.table("per_minute").rows("speed")] == [135.3]
        assert s.table("condition").rows("faults", "positions") == [(1, 3)]
        assert s.table("latest").rows("car", "speed") == [("a", 140.0), ("b", 50.0)]
        assert s.table("clean__quarantine").rows("speed") == [(999.0,)]
        s.assert_consistent()
