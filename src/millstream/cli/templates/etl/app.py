"""Incremental ETL: raw records to tables one can ask.

raw         every record as it came, with a verdict: ok, late, future, malformed or rejected
clean       the right records, each once, within plausible bounds; the others are in quarantine
per_minute  what each sensor measured per minute, kept up to date
latest      the newest minute of each sensor, recomputed whenever per_minute changes
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

app = ms.App("my_app")


def record(dice: random.Random, number: int) -> dict[str, object]:
    """Make up what a sensor says; one in a hundred is out of bounds."""
    value = 999.0 if dice.random() < 0.01 else round(dice.gauss(20, 5), 1)
    return {"sensor": f"s{dice.randrange(8)}", "number": number, "value": value}


@app.source(event_time="at", watermark="1 minute")
def raw() -> ms.Generator:
    """Records, made up here; put ms.Files(…) or ms.Kafka(…) in its place."""
    return ms.Generator(
        "sensor STRING NOT NULL, number BIGINT NOT NULL, at TIMESTAMP, value DOUBLE",
        make=record,
        event_time="at",
        rate=200,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@app.table(expect={"value is plausible": "value BETWEEN -60 AND 60"})
def clean(raw: DataFrame) -> DataFrame:
    """Each right record once."""
    return ms.dedup(raw, ["sensor", "number", "at"])


@app.table(mode="update", key=["sensor", "window"])
def per_minute(clean: DataFrame) -> DataFrame:
    """What each sensor measured per minute."""
    return clean.groupBy("sensor", F.window("at", "1 minute")).agg(
        F.count("*").alias("records"), F.min("value").alias("least"), F.max("value").alias("most")
    )


app.sql(
    "latest",
    """
    SELECT sensor, max(window.start) AS minute, sum(records) AS records
    FROM per_minute GROUP BY sensor
    """,
    mode="complete",
)
