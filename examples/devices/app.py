"""Devices in the field: the same tables for ETL, status, anomalies and ad-hoc queries.

telemetry  every record, with a verdict
clean      valid records, each once; implausible ones are in quarantine
status     the latest record of each device, by event time, and whether its battery is low
per_minute temperature of each device by minute, kept up to date
normal     the usual temperature of each device: mean and spread over all its minutes
anomalies  minutes in which a device was far from its usual temperature
offline    devices without a record for five minutes
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

DEVICES = 30
SPREADS = 3
"""How many standard deviations from the mean are too far."""

app = ms.App("devices")


def record(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a record; device 7 runs hot at times, one record in 300 is implausible."""
    device = dice.randrange(DEVICES)
    celsius = dice.gauss(20 + device / 5, 0.5)
    if device == 7 and number // 3000 % 5 == 4:
        celsius += 15
    if dice.random() < 1 / 300:
        celsius = -273.0
    return {
        "device": f"device-{device:02d}",
        "celsius": round(celsius, 2),
        "battery": max(0, 100 - number // 500 - device),
        "firmware": "2.1" if device % 3 else "2.0",
    }


@app.source(event_time="at", watermark="10 seconds", idle="1 minute")
def telemetry() -> ms.Generator:
    """Records, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="device STRING NOT NULL, at TIMESTAMP, celsius DOUBLE, battery INT, firmware STRING",
        make=record,
        event_time="at",
        rate=100,
        seed=3,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@app.table(expect={"temperature is plausible": "celsius BETWEEN -60 AND 120"})
def clean(telemetry: DataFrame) -> DataFrame:
    """Each valid record once."""
    return ms.dedup(telemetry, ["device", "at"])


@app.table(mode="update", key=["device"])
def status(clean: DataFrame) -> DataFrame:
    """The latest record of each device; there are few devices, so the state stays small."""
    last = F.max_by(F.struct("celsius", "battery", "firmware"), "at").alias("last")
    said = clean.groupBy("device").agg(F.max("at").alias("at"), last)
    return said.select("device", "at", "last.*", (F.col("last.battery") < 20).alias("is_low"))


@app.table(mode="update", key=["device", "window"])
def per_minute(clean: DataFrame) -> DataFrame:
    """The average temperature of each device."""
    return clean.groupBy("device", F.window("at", "1 minute")).agg(
        F.count("*").alias("records"), F.avg("celsius").alias("celsius")
    )


app.sql(
    "normal",
    """
    SELECT device, count(*) AS minutes, avg(celsius) AS mean, stddev_samp(celsius) AS spread
    FROM per_minute GROUP BY device
    """,
    mode="complete",
)

app.sql(
    "anomalies",
    f"""
    SELECT m.device, m.window.start AS minute, round(m.celsius, 2) AS celsius,
           round((m.celsius - n.mean) / n.spread, 1) AS spreads
    FROM per_minute m JOIN normal n ON m.device = n.device
    WHERE n.minutes >= 10 AND abs(m.celsius - n.mean) > {SPREADS} * n.spread
    """,
    mode="complete",
)


@app.table
def offline(clean: DataFrame) -> DataFrame:
    """Devices without a further record for five minutes, even if all devices stop."""
    heard_again = (
        ms.pattern(key="device", within="5 minutes")
        .step("last", "celsius IS NOT NULL")
        .step("next", "celsius IS NOT NULL")
    )
    return ms.absent(clean, heard_again, select="device, began AS last_heard, until")
