"""Monitoring a fleet of cars: where each one is, how it drives, and which has stopped reporting.

positions   reports of the cars every few seconds: place, speed, fuel
faults      fault codes of the engines; they are rare, so the clock moves the watermark
clean       positions that are plausible, each once; the others are in quarantine
latest      the last position of each car, by event time
per_minute  the speed of each car, once for each minute, when the minute is final
condition   positions and faults of the whole fleet by minute, from both sources
speeding    cars that drove faster than 130 three times in a row
silent      cars that have not reported for two minutes
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

CARS = 50

app = ms.App("fleet")

three_times = (
    ms.pattern(key="car", within="1 minute")
    .step("first", "speed > 130")
    .step("second", "speed > 130", strict=True)
    .step("third", "speed > 130", strict=True)
)

heard_again = (
    ms.pattern(key="car", within="2 minutes")
    .step("last", "speed IS NOT NULL")
    .step("next", "speed IS NOT NULL")
)


def position(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a position; one in five hundred is from a broken sensor."""
    car = dice.randrange(CARS)
    speed = 999.0 if dice.random() < 0.002 else round(abs(dice.gauss(70 + car, 15)), 1)
    return {
        "car": f"car-{car:02d}",
        "lat": round(52.5 + dice.gauss(0, 0.1), 5),
        "lon": round(13.4 + dice.gauss(0, 0.1), 5),
        "speed": speed,
        "fuel": max(0.0, round(60 - number % 6000 / 100, 2)),
    }


def fault(dice: random.Random, _: int) -> dict[str, object]:
    """Generate a fault."""
    return {"car": f"car-{dice.randrange(CARS):02d}", "code": dice.choice(["P0300", "P0420"])}


@app.source(event_time="at", watermark="10 seconds")
def positions() -> ms.Generator:
    """Positions, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="car STRING NOT NULL, at TIMESTAMP, lat DOUBLE, lon DOUBLE, speed DOUBLE, "
        "fuel DOUBLE",
        make=position,
        event_time="at",
        rate=200,
        seed=11,
        late=0.01,
        duplicate=0.01,
        malformed=0.005,
    )


@app.source(event_time="at", watermark="10 seconds", idle="30 seconds")
def faults() -> ms.Generator:
    """Faults, which are rare."""
    return ms.Generator(
        schema="car STRING NOT NULL, at TIMESTAMP, code STRING",
        make=fault,
        event_time="at",
        rate=1,
        seed=12,
    )


@app.table(expect={"speed is plausible": "speed BETWEEN 0 AND 250"})
def clean(positions: DataFrame) -> DataFrame:
    """Each position once."""
    return ms.dedup(positions, ["car", "at"])


@app.table(mode="update", key=["car"])
def latest(clean: DataFrame) -> DataFrame:
    """The last position of each car; there are few cars, so the state stays small."""
    last = F.max_by(F.struct("lat", "lon", "speed", "fuel"), "at").alias("last")
    return clean.groupBy("car").agg(F.max("at").alias("at"), last).select("car", "at", "last.*")


@app.table
def per_minute(clean: DataFrame) -> DataFrame:
    """The speed of each car."""
    return clean.groupBy("car", F.window("at", "1 minute")).agg(
        F.count("*").alias("positions"),
        F.round(F.avg("speed"), 1).alias("speed"),
        F.max("speed").alias("fastest"),
    )


@app.view
def reports(clean: DataFrame, faults: DataFrame) -> DataFrame:
    """Positions and faults together."""
    shown = clean.select("at", F.lit(0).alias("fault"), "speed")
    complained = faults.select("at", F.lit(1).alias("fault"), F.lit(None).cast("double"))
    return shown.union(complained)


@app.table
def condition(reports: DataFrame) -> DataFrame:
    """The fleet as a whole; a minute without faults does not delay it."""
    return reports.groupBy(F.window("at", "1 minute")).agg(
        F.sum("fault").alias("faults"),
        F.count("speed").alias("positions"),
        F.round(F.avg("speed"), 1).alias("speed"),
    )


@app.table
def speeding(clean: DataFrame) -> DataFrame:
    """Cars that drove too fast three times, once the watermark has passed the third time."""
    return ms.match(clean, three_times, select="car, began, ended, max(third.speed) AS fastest")


@app.table
def silent(clean: DataFrame) -> DataFrame:
    """Cars without a further position for two minutes."""
    return ms.absent(clean, heard_again, select="car, began AS last_heard, until")
