"""Incremental ETL: device records, from raw JSON to tables that can be queried.

bronze  every record, with a verdict: ok, late, future, malformed or rejected
silver  valid records, each once, within plausible bounds; the others are in quarantine
gold    average, least and greatest temperature per device and ten seconds, kept up to date
hottest the devices with the highest average, recomputed whenever gold changes
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

SITES = ("berlin", "lagos", "lima", "oslo")

app = ms.App("etl")


def reading(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a record; one in two hundred is from a broken sensor and reports 999."""
    device = dice.randrange(40)
    celsius = 999.0 if dice.random() < 0.005 else round(dice.gauss(21 + device / 10, 3), 2)
    return {
        "device": f"device-{device:02d}",
        "site": SITES[device % len(SITES)],
        "celsius": celsius,
        "signal": dice.randrange(101),
        "sequence": number,
    }


@app.source(event_time="at", watermark="30 seconds", future="1 hour")
def bronze() -> ms.Generator:
    """Device records, some of them late, duplicate, malformed or in the future."""
    return ms.Generator(
        schema="device STRING NOT NULL, site STRING, at TIMESTAMP, celsius DOUBLE, signal INT, "
        "sequence BIGINT NOT NULL",
        make=reading,
        event_time="at",
        rate=500,
        seed=7,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
        future=0.005,
    )


@app.table(
    expect={
        "temperature is plausible": "celsius BETWEEN -60 AND 80",
        "signal is a percentage": "signal BETWEEN 0 AND 100",
    },
    partition_by=["site"],
)
def silver(bronze: DataFrame) -> DataFrame:
    """Each valid record once."""
    return ms.dedup(bronze, ["device", "at", "sequence"])


@app.table(mode="update", key=["device", "window"])
def gold(silver: DataFrame) -> DataFrame:
    """The temperature of each device, per ten seconds."""
    return silver.groupBy("device", F.window("at", "10 seconds")).agg(
        F.count("*").alias("readings"),
        F.avg("celsius").alias("average"),
        F.min("celsius").alias("least"),
        F.max("celsius").alias("greatest"),
    )


app.sql(
    "hottest",
    """
    SELECT device, round(sum(average * readings) / sum(readings), 3) AS average
    FROM gold GROUP BY device ORDER BY average DESC, device LIMIT 5
    """,
    mode="complete",
)
