"""Status by event time: however clicks arrive, and reported when it is final."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def click(at: str, user: str = "ann") -> dict[str, object]:
    return {"user": user, "page": 1, "at": at}


def test_a_user_is_online_active_inactive_and_gone(stream: Callable[..., Script]) -> None:
    with stream(load(APP)) as s:
        for clock in ("12:00:04", "12:00:00", "12:00:02"):
            s.send("clicks", **click(clock))
        s.batch()
        assert s.table("changes").rows() == []

        s.send("clicks", **click("12:00:30", "bob"))
        s.batch()
        assert s.table("changes").rows("status") == [("active",), ("inactive",), ("online",)]
        assert s.table("latest").rows("user", "status") == [("ann", "inactive")]

        s.send("clicks", **click("12:02:00", "eve"))
        s.batch()
        assert s.table("crowd").rows() == [("offline", 2)]
        s.assert_consistent()
