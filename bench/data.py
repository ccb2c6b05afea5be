"""Device records as JSON lines: what both sides read."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

DDL = "device STRING, site STRING, at TIMESTAMP, celsius DOUBLE, signal INT, sequence BIGINT"
START = datetime(2026, 11, 1, tzinfo=UTC)


def lines(first: int, count: int) -> str:
    """Records number `first` and on, a millisecond apart; one in a thousand is broken."""
    dice = random.Random(first)
    return "".join(
        (
            json.dumps(
                {
                    "device": f"device-{dice.randrange(1000):04d}",
                    "site": "berlin",
                    "at": (START + timedelta(milliseconds=n)).isoformat(),
                    "celsius": round(dice.gauss(21, 3), 2),
                    "signal": dice.randrange(101),
                    "sequence": n,
                }
            )
            if n % 1000 != 999
            else '{"device": "broken'
        )
        + "\n"
        for n in range(first, first + count)
    )


def put(folder: Path, number: int, rows: int) -> None:
    """Put one file of records into a folder, whole or not at all."""
    temporary = folder / f".{number:06d}"
    temporary.write_text(lines(number * rows, rows))
    temporary.rename(folder / f"{number:06d}.json")
