"""The same application by hand in plain PySpark: Spark's defaults, or tuned as ours is."""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession, functions as F

from bench.data import DDL
from millstream.spark.defaults import settings
from millstream.spark.jars import resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def session(*, tuned: bool) -> SparkSession:
    jars = resolve()
    conf = {**DELTA, "spark.jars": ",".join(map(str, jars)), "spark.log.level": "ERROR"}
    if tuned:
        conf = {**settings("local[*]", {}, jars=jars, java_flags=()), "spark.log.level": "ERROR"}
    builder = SparkSession.builder.appName("plain")
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def parsed(spark: SparkSession, folder: str) -> DataFrame:
    """Parse with the broken record kept, as the usual bronze table does."""
    schema = f"{DDL}, _corrupt_record STRING"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt_record"}
    rows = spark.readStream.schema(schema).options(**options).json(folder)
    return rows.select(
        "*",
        F.col("_metadata.file_path").alias("_origin"),
        F.current_timestamp().alias("_arrived_at"),
    )


def counted(rows: DataFrame) -> DataFrame:
    """Tell right rows from malformed and future ones, and count them: what a live source does."""
    verdict = (
        F.when(F.expr("_corrupt_record IS NOT NULL OR at IS NULL"), "malformed")
        .when(F.expr("at > _arrived_at + INTERVAL 1 DAY"), "future")
        .otherwise("ok")
    )
    counts = [F.count_if(F.col("_verdict") == v).alias(v) for v in ("ok", "future", "malformed")]
    return rows.withColumn("_verdict", verdict).observe("bronze", *counts)


def write(rows: DataFrame, home: str, name: str, *, once: bool) -> StreamingQuery:
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{home}/cp/{name}")
    if once:
        writer = writer.trigger(availableNow=True)
    return writer.start(f"{home}/tables/{name}")


def silver(spark: SparkSession, home: str) -> DataFrame:
    rows = spark.readStream.format("delta").load(f"{home}/tables/bronze")
    right = rows.where("_corrupt_record IS NULL").withWatermark("at", "10 minutes")
    return right.where("celsius BETWEEN -60 AND 80").drop("_corrupt_record", "_origin")


def serve(folder: str, home: str) -> None:
    spark = session(tuned=False)
    write(parsed(spark, folder), home, "bronze", once=False)
    while not os.path.exists(f"{home}/tables/bronze/_delta_log/00000000000000000000.json"):
        time.sleep(0.05)
    write(silver(spark, home), home, "silver", once=False).awaitTermination()


def throughput(folder: str, home: str, rows: int, *, live: bool) -> None:
    spark = session(tuned=True)
    rates = []
    for attempt in range(5):
        place = f"{home}-{attempt}"
        began = time.monotonic()
        if live:
            right = counted(parsed(spark, folder)).where("_verdict = 'ok'")
            right = right.withWatermark("at", "10 minutes").where("celsius BETWEEN -60 AND 80")
            kept = right.drop("_corrupt_record", "_origin", "_arrived_at", "_verdict")
            write(kept, place, "silver", once=True).awaitTermination()
        else:
            write(parsed(spark, folder), place, "bronze", once=True).awaitTermination()
            write(silver(spark, place), place, "silver", once=True).awaitTermination()
        rates.append(rows / (time.monotonic() - began))
    print(statistics.median(rates[2:]))


if __name__ == "__main__":
    what, folder, home = sys.argv[1:4]
    if what == "serve":
        serve(folder, home)
    else:
        throughput(folder, home, int(sys.argv[4]), live=what == "live")
        sys.stdout.flush()
        os._exit(0)
