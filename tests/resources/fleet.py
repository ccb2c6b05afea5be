"""A fleet of vans: what the tests and the pictures of the console show."""

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, functions as F

import millstream as ms

app = ms.App("fleet")


def reading(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a reading; a few sensors report a speed that no van drives."""
    speed = 900.0 if dice.random() < 0.02 else round(abs(dice.gauss(52, 21)), 1)
    return {"vehicle": f"v{dice.randrange(24):02d}", "speed": speed, "fuel": dice.randrange(101)}


@app.source(event_time="at", watermark="20 seconds", future="1 hour")
def readings() -> ms.Generator:
    """Readings of all vans; some are late, malformed or dated in the future."""
    return ms.Generator(
        schema="vehicle STRING NOT NULL, at TIMESTAMP, speed DOUBLE, fuel INT",
        make=reading,
        event_time="at",
        rate=int(os.environ.get("FLEET_RATE", "120")),
        seed=11,
        late=0.01,
        malformed=0.02,
        future=0.004,
    )


@app.table(expect={"speed is plausible": "speed BETWEEN 0 AND 250"})
def clean(readings: DataFrame) -> DataFrame:
    """Each reading once, with a plausible speed."""
    return ms.dedup(readings, ["vehicle", "at"])


@app.table(mode="update", key=["vehicle", "window"])
def per_minute(clean: DataFrame) -> DataFrame:
    """Speed and fuel of each van, per ten seconds."""
    return clean.groupBy("vehicle", F.window("at", "10 seconds")).agg(
        F.count("*").alias("readings"),
        F.round(F.avg("speed"), 1).alias("speed"),
        F.min("fuel").alias("fuel"),
    )


app.sql(
    "busiest",
    "SELECT vehicle, sum(readings) AS readings FROM per_minute "
    "GROUP BY vehicle ORDER BY readings DESC LIMIT 5",
    mode="complete",
)


@app.serve(to=ms.SQLite("fleet.db", key="vehicle"), mode="update")
def latest(clean: DataFrame) -> DataFrame:
    """The last speed of each van."""
    last = F.max_by("speed", "at").alias("speed")
    return clean.groupBy("vehicle").agg(F.max("at").alias("at"), last)


@ms.stateful(
    key="vehicle",
    state="fastest DOUBLE",
    emits="vehicle STRING, speed DOUBLE",
    timeout="event 10 minutes",
)
def fastest(
    vehicle: str, rows: Sequence[Any], state: Any, timer: ms.Timer
) -> Iterator[tuple[object, ...]]:
    """Return each speed that is above all before."""
    for row in rows:
        if row.speed > (state.fastest or 0.0):
            state.fastest = row.speed
            yield vehicle, row.speed


@app.table
def records(clean: DataFrame) -> DataFrame:
    """Each new record of a van."""
    return fastest(clean)


@app.alert(to=ms.Log("alerts.jsonl"), key=["vehicle"], cooldown="1 minute", event_time="at")
def low_fuel(clean: DataFrame) -> DataFrame:
    """A van with little fuel left."""
    return clean.where("fuel < 1").select("vehicle", "at", "fuel")
