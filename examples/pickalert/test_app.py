"""Orders that are not picked in time, sent to a server, whenever the driver dies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load
from millstream.testing.hook import Hook

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def scan(order: str, kind: str, at: str, zone: str = "dry") -> dict[str, str]:
    return {"order": order, "zone": zone, "kind": kind, "at": at}


def test_what_is_not_picked_in_time_is_reported_under_one_key_though_the_driver_dies(
    stream: Callable[..., Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hook() as hook:
        monkeypatch.setenv("PICK_HOOK", f"{hook.address}/pick?token=s3cret")
        with stream(load(APP, "prod")) as s:
            s.send("events", **scan("o1", "placed", "12:00:00"))
            s.send("events", **scan("o2", "placed", "12:01:00"))
            s.send("events", **scan("o3", "placed", "12:02:00"))
            s.send("events", **scan("o2", "picked", "12:15:59"))
            s.send("events", **scan("o4", "placed", "12:20:00", zone="cold"))
            s.crash(after="alert_sent", query="unpicked")
            s.restart()
            s.drain()
            s.assert_consistent()

        reported = [each for each in hook.received if each.body["alert"] == "unpicked"]
        assert {each.body["row"]["order"] for each in reported} == {"o1", "o3"}
        assert len(reported) == 3, "the driver died before it noted the first"
        assert len({each.key for each in reported}) == 2
        [slow] = [each for each in hook.received if each.body["alert"] == "slow"]
        assert slow.body["key"] == {"zone": "dry"}
