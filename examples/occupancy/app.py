"""Room occupancy: a model learns from rooms with a counter which rooms are occupied.

readings        every reading of the sensors of a room, with a verdict
occupancy       the model: each reading as it was scored before it was learnt, and the versions
rooms           for each room, whether it is occupied, by its last reading
accuracy        how many of the predictions of each ten seconds were right
season_changed  sent when the model begins to be wrong: the rooms are not used as they were

The first rooms have a counter at the door, which says whether they are occupied; the others have
none, and the model alone says it. Half a minute after the start the season changes: until then
people turn the lamps on, from then on the sun is enough, and only the air tells.
"""

import random

from pyspark.sql import DataFrame, functions as F
from river import drift, preprocessing, tree

import millstream as ms

ROOMS, WITH_COUNTER = 20, 10
RATE = 100
SEASON = 30 * RATE

app = ms.App("occupancy")


def reading(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a reading."""
    room = dice.randrange(ROOMS)
    is_occupied, is_dark = dice.random() < 0.4, number < SEASON
    lamp = 400 if is_occupied and is_dark else 0
    return {
        "room": f"room-{room:02d}",
        "light": round(dice.gauss(100 + lamp, 40), 1),
        "co2": round(dice.gauss(900 if is_occupied else 450, 80), 1),
        "temperature": round(dice.gauss(21, 1), 1),
        "occupied": is_occupied if room < WITH_COUNTER else None,
    }


@app.source(event_time="at", watermark="2 seconds")
def readings() -> ms.Generator:
    """Readings, some of them late, or malformed."""
    return ms.Generator(
        schema="room STRING NOT NULL, at TIMESTAMP, light DOUBLE, co2 DOUBLE, temperature DOUBLE, "
        "occupied BOOLEAN",
        make=reading,
        event_time="at",
        rate=RATE,
        seed=9,
        late=0.01,
        malformed=0.01,
    )


@app.model(
    learner=preprocessing.StandardScaler() | tree.HoeffdingTreeClassifier(grace_period=50),
    label="occupied",
    features=["light", "co2", "temperature"],
    every="10 seconds",
    drift=drift.ADWIN(),  # type: ignore[no-untyped-call]
)
def occupancy(readings: DataFrame) -> DataFrame:
    """Learn from the rooms with a counter; those without are scored."""
    return readings


@app.table(mode="update", key=["room"])
def rooms(occupancy: DataFrame) -> DataFrame:
    """The last prediction for each room."""
    last = F.max_by(F.struct("at", "prediction", "score"), F.struct("at", "light", "co2"))
    return occupancy.groupBy("room").agg(last.alias("last")).select("room", "last.*")


@app.table
def accuracy(occupancy: DataFrame) -> DataFrame:
    """How good the model was, for each ten seconds, on readings that it had not learnt."""
    known = occupancy.where("occupied IS NOT NULL")
    is_right = F.col("prediction") == F.col("occupied")
    return known.groupBy(F.window("at", "10 seconds").alias("time")).agg(
        F.count("*").alias("readings"), F.avg(is_right.cast("int")).alias("accuracy")
    )


@app.alert(to=ms.Log(), key=["at"])
def season_changed(occupancy: DataFrame) -> DataFrame:
    """A reading at which the errors of the model are no longer what they were."""
    return occupancy.where("_drift").select("at", "room", "_learnt")
