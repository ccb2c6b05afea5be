"""A small app over a folder of CSV, run by crash tests: a view, closed windows, rows dropped."""

import os

from pyspark.sql import DataFrame, functions as F

import millstream as ms

app = ms.App("meters")


@app.source(event_time="at", watermark="20 seconds")
def readings() -> ms.Files:
    folder = os.environ.get("METER_READINGS", "readings")
    return ms.Files(
        folder,
        format="csv",
        schema="meter STRING, at TIMESTAMP, watts INT, number BIGINT",
        options={"maxFilesPerTrigger": 5},
    )


@app.view
def in_kilowatts(readings: DataFrame) -> DataFrame:
    return readings.withColumn("kilowatts", F.col("watts").cast("decimal(12,3)") / 1000)


@app.table(expect={"is used, not made": "watts >= 0"}, on_violation="drop", partition_by=["meter"])
def used(in_kilowatts: DataFrame) -> DataFrame:
    return in_kilowatts


@app.table()
def per_ten_seconds(used: DataFrame) -> DataFrame:
    return used.groupBy("meter", F.window("at", "10 seconds")).agg(
        F.count("*").alias("readings"), F.max("kilowatts").alias("peak")
    )


app.sql(
    "peaks",
    "SELECT meter, count(*) AS windows, max(peak) AS peak FROM per_ten_seconds GROUP BY meter",
    mode="complete",
)
