"""2, then 10, then 5: by event time, whatever order they arrive in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def number(at: str, value: int, device: str = "a") -> dict[str, object]:
    return {"device": device, "value": value, "at": at}


def test_two_ten_five_is_found_by_event_time_and_only_once_it_is_final(
    stream: Callable[..., Script],
) -> None:
    with stream(load(APP)) as s:
        s.send("numbers", **number("12:00:03", 10))
        s.send("numbers", **number("12:00:01", 2))
        s.batch()
        s.send("numbers", **number("12:00:05", 5))
        s.send("numbers", **number("12:00:04", 7))
        s.send("numbers", **number("12:00:06", 2))
        s.batch()
        assert s.table("found").rows() == []

        s.send("numbers", **number("12:00:21.002", 20, "b"))
        s.batch()

        [match] = s.table("found").rows()
        times = (match.two_at, match.ten_at, match.five_at)
        assert [moment.second for moment in times] == [1, 3, 5]
        [open_two] = s.table("stuck").rows()
        assert (open_two.began.second, open_two.until.second) == (6, 16)
        s.assert_consistent()
