"""Devices under a script: one runs hot, one sends nonsense, and all fall silent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.lake.home import Home
from millstream.loading import load
from millstream.sql import query

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def record(at: str, celsius: float, battery: int = 50) -> dict[str, object]:
    return {"device": "a", "at": at, "celsius": celsius, "battery": battery, "firmware": "2.1"}


def test_status_anomalies_and_silence_come_from_the_same_tables_that_questions_are_asked_of(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with stream(load(APP), home=home) as s:
        for minute in range(20):
            hot = 15 if minute == 17 else 0
            s.send("telemetry", **record(f"12:{minute:02d}:00", 20 + minute % 2 + hot))
        s.send("telemetry", **record("12:19:30", -273.0))
        s.send("telemetry", **record("12:19:40", 20.0, battery=9))
        s.send("telemetry", **record("12:19:40", 20.0, battery=9))
        s.batch()

        assert s.table("status").rows("battery", "is_low") == [(9, True)]
        [(minute, spreads)] = s.table("anomalies").rows("minute", "spreads")
        assert (minute.minute, spreads > 3) == (17, True)
        assert s.table("offline").rows("device") == []
        asked = "SELECT _rules[0] AS rule, celsius FROM clean__quarantine"
        assert query(Home.at(home), asked)[1] == [("temperature is plausible", -273.0)]
        before = "SELECT count(*) FROM per_minute VERSION AS OF 1"
        assert query(Home.at(home), before)[1] == [(0,)]

        s.advance("27 minutes")
        s.batch()

        assert s.table("offline").rows("device") == [("a",)]
        s.assert_consistent()
