"""What crash tests know of the meters: how their readings come."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chaos import Folder

APP = str(Path(__file__).parent / "resources" / "meters.py")
START = datetime(2026, 11, 1, tzinfo=UTC)


def feeder(place: Path, seed: int) -> Folder:
    """Make readings as CSV: some late, some negative, some cut off."""
    dice = random.Random(seed)

    def line(number: int) -> str:
        late = timedelta(minutes=5) if dice.random() < 0.03 else timedelta()
        at = (START + timedelta(seconds=number / 2) - late).isoformat()
        watts = -1 if dice.random() < 0.05 else dice.randrange(4000)
        reading = f"meter-{number % 7},{at},{watts},{number}"
        return reading[:20] if dice.random() < 0.02 else reading

    return Folder(place, line, source="readings", variable="METER_READINGS")
