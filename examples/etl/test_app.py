"""The app under a script: rows arrive when they are sent, and time moves when a test says so."""

from collections.abc import Callable
from pathlib import Path

from millstream.loading import load
from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def reading(sequence: int, at: str, celsius: float) -> dict[str, object]:
    return {"device": "d1", "site": "oslo", "at": at, "celsius": celsius, "signal": 50} | {
        "sequence": sequence
    }


def test_a_record_that_comes_twice_counts_once_and_an_implausible_one_not_at_all(
    stream: Callable[..., Script],
) -> None:
    with stream(load(APP)) as s:
        s.send("bronze", **reading(1, "12:00:03", 20.0))
        s.send("bronze", **reading(1, "12:00:03", 20.0))
        s.send("bronze", **reading(2, "12:00:04", 999.0))
        s.batch()
        s.drain()

        assert s.table("silver").rows("device", "celsius") == [("d1", 20.0)]
        assert s.table("silver__quarantine").rows("celsius") == [(999.0,)]
        assert s.verdicts("bronze") == {"ok": 3}
        s.assert_consistent()
