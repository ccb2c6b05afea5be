"""Operating modes: k-means finds the modes of machines, and follows them while they move.

readings  every reading of a machine, with a verdict
modes     the model: each reading with the mode that it was in, and the versions
places    where each mode is, by ten seconds: its centre moves while the machines warm up
usage     how long each machine is in which mode, by ten seconds
strange   an alert: a reading that is far from every mode

Machines idle, work, or work at full load. While they warm up, the temperature of every mode rises;
what was learnt ten seconds ago counts half. Nobody says which mode a reading is of.
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

MACHINES, RATE = 20, 200
WARM = 120 * RATE
"""After so many readings the machines are warm."""
MODES = ((20.0, 1.0), (45.0, 6.0), (70.0, 12.0))
"""The temperature and vibration of each mode while the machines are cold."""
RISE = 15.0
FAR = 15.0

app = ms.App("modes")


def reading(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a reading; one in a thousand is of a machine that breaks."""
    celsius, vibration = dice.choice(MODES)
    warm = RISE * min(1.0, number / WARM)
    broken = 40.0 if dice.random() < 0.001 else 0.0
    return {
        "machine": f"machine-{dice.randrange(MACHINES):02d}",
        "celsius": round(dice.gauss(celsius + warm + broken, 2), 2),
        "vibration": round(dice.gauss(vibration + broken, 0.5), 2),
    }


@app.source(event_time="at", watermark="2 seconds")
def readings() -> ms.Generator:
    """Readings, some of them late, or malformed."""
    return ms.Generator(
        schema="machine STRING NOT NULL, at TIMESTAMP, celsius DOUBLE, vibration DOUBLE",
        make=reading,
        event_time="at",
        rate=RATE,
        seed=12,
        late=0.01,
        malformed=0.01,
    )


@app.model(
    learner=ms.learn.KMeans(len(MODES), half_life="10 seconds"),
    features=["celsius", "vibration"],
    every="5 seconds",
)
def modes(readings: DataFrame) -> DataFrame:
    """Find the modes in the readings of all machines."""
    return readings


@app.table
def places(modes: DataFrame) -> DataFrame:
    """The middle of the readings of each mode."""
    known = modes.where("prediction IS NOT NULL")
    return known.groupBy(F.col("prediction").alias("mode"), F.window("at", "10 seconds")).agg(
        F.count("*").alias("readings"),
        F.round(F.avg("celsius"), 2).alias("celsius"),
        F.round(F.avg("vibration"), 2).alias("vibration"),
    )


@app.table
def usage(modes: DataFrame) -> DataFrame:
    """How many readings of each machine were in each mode."""
    known = modes.where("prediction IS NOT NULL")
    window = F.window("at", "10 seconds")
    return known.groupBy("machine", window, F.col("prediction").alias("mode")).count()


@app.alert(to=ms.Log(), key=["machine", "at"])
def strange(modes: DataFrame) -> DataFrame:
    """Readings that are far from every mode."""
    return modes.where(F.col("score") > FAR).select("machine", "at", "celsius", "vibration")
