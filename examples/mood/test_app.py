"""A mood is made of messages in the order they were written, not in which they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def test_moods_change_by_event_time_and_bad_days_pass(stream: Callable[..., Script]) -> None:
    def says(clock: str, text: str, user: str = "ann") -> None:
        s.send("messages", user=user, text=text, at=clock)

    with stream(load(APP)) as s:
        says("12:00:03", "bad bad bad train")
        says("12:00:01", "great coffee today")
        s.batch()
        s.crash()
        s.restart()
        says("12:00:02", "the train")
        says("13:30:00", "fine", "bob")
        s.batch()
        says("13:40:00", "bad coffee")
        says("15:00:00", "fine", "bob")
        s.batch()

        assert s.table("moods").rows("user", "mood", "was", "words") == [
            ("ann", "calm", "happy", ("bad", "train", "coffee")),
            ("ann", "calm", None, ("bad", "coffee")),
            ("ann", "happy", None, ("coffee", "great", "today")),
            ("bob", "calm", None, ("fine",)),
        ]
        s.assert_consistent()
