"""The modes of machines are found without labels, and followed while they move."""

from __future__ import annotations

import math
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


def test_centres_follow_machines_that_warm_up(stream: Callable[..., Script]) -> None:
    dice, modes, rise = random.Random(1), ((20.0, 1.0), (45.0, 6.0), (70.0, 12.0)), 15.0

    def send(first: int, last: int) -> None:
        for number in range(first, last):
            celsius, vibration = modes[number % 3]
            s.send(
                "readings",
                machine=f"machine-{number % 20:02d}",
                at=(NOON + timedelta(milliseconds=100 * number)).isoformat(),
                celsius=dice.gauss(celsius + rise * number / 900, 1),
                vibration=dice.gauss(vibration, 0.3),
            )

    with stream(load(APP)) as s:
        send(0, 300)
        s.batch()
        send(300, 600)
        s.send("readings", machine="machine-99", at="12:00:50", celsius=200.0, vibration=90.0)
        s.crash(after="sink_commit", query="modes")
        s.restart()
        send(600, 900)
        s.send("readings", machine="machine-00", at="12:03:00", celsius=20.0, vibration=1.0)
        s.batch()
        s.batch()

        places = s.table("places").rows("window", "mode", "celsius", "vibration")
        for start, warm in ((20, 250 / 60), (70, 750 / 60)):
            found = [p[2:] for p in places if p[0].start == NOON + timedelta(seconds=start)]
            for celsius, vibration in modes:
                assert min(math.dist(p, (celsius + warm, vibration)) for p in found) < 1
        assert s.table("strange").rows("machine") == [("machine-99",)]
        s.assert_consistent()
