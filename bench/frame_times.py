"""Landing of event times that are written in several ways, in one process and by turns."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import millstream as ms
from bench.data import START, lines

ROUNDS = 6
ROWS, FILES = 400_000, 2
_OTHERS = "device STRING, site STRING, celsius DOUBLE, signal INT, sequence BIGINT"


@dataclass(frozen=True)
class Written:
    """One way to write an event time."""

    name: str
    columns: str
    event_time: str = "at"
    formats: str = ""
    wanted: float = 0.97
    """At least, of the throughput of a plain TIMESTAMP column."""

    def fields(self, number: int) -> dict[str, Any]:
        """Write the time of a record."""
        at = START + timedelta(milliseconds=number)
        match self.name:
            case "epoch":
                return {"at": int(at.timestamp() * 1000)}
            case "format":
                return {"at": at.strftime("%d/%b/%Y:%H:%M:%S +0000")}
            case "expression":
                return {"ms": int(at.timestamp() * 1000)}
            case "expression of a text" | "general expression":
                return {"day": f"{at:%Y-%m-%d}", "clock": f"{at:%H:%M:%S.%f}"}
        return {"at": at.isoformat()}


WAYS = (
    Written("plain", "at TIMESTAMP", wanted=1.0),
    Written("epoch", "at TIMESTAMP", formats="epoch_ms"),
    Written("format", "at TIMESTAMP", formats="dd/MMM/yyyy:HH:mm:ss Z"),
    Written("expression", "ms BIGINT", "timestamp_millis(ms)"),
    Written(
        "expression of a text",
        "day STRING, clock STRING",
        "to_timestamp(day || ' ' || clock)",
        wanted=0.75,
    ),
    Written(
        "general expression",
        "day STRING, clock STRING",
        "to_timestamp(concat_ws(' ', day, clock))",
        wanted=0.75,
    ),
)


def put(way: Written, folder: Path) -> None:
    """Write the records of one way; they differ in their times alone."""
    folder.mkdir(parents=True)
    for number in range(FILES):
        with (folder / f"{number}.json").open("w") as file:
            first = number * ROWS
            for n, line in enumerate(lines(first, ROWS).splitlines(), first):
                if n % 1000 == 999:
                    file.write(line + "\n")
                    continue
                record = json.loads(line)
                del record["at"]
                file.write(json.dumps(way.fields(n) | record) + "\n")


def land(way: Written, folder: Path, home: Path) -> float:
    """Land all records of one way; return rows a second."""
    app = ms.App("bench")
    formats = {"at": way.formats} if way.formats else {}
    schema = f"{way.columns}, {_OTHERS}"
    app.source(name="bronze", event_time=way.event_time, watermark="10 minutes")(
        lambda: ms.Files(str(folder), schema=schema, formats=formats)
    )
    running = app.open({"home": str(home), "once": True, "fail_fast": True})
    began = time.monotonic()
    running.serve()
    running.raise_if_stopped_for_good()
    return FILES * ROWS / (time.monotonic() - began)


def main(place: Path) -> None:
    """Print rows a second of each way, the median of all rounds but the first two."""
    rates: dict[str, list[float]] = {way.name: [] for way in WAYS}
    for way in WAYS:
        put(way, place / "in" / way.name)
    for turn in range(ROUNDS):
        for way in WAYS:
            home = place / f"{way.name}-{turn}"
            rates[way.name].append(land(way, place / "in" / way.name, home))
    print(json.dumps({name: statistics.median(found[2:]) for name, found in rates.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
