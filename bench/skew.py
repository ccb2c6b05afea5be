"""A hot key: nine of ten rows have it. Spark's own aggregation and ms.salted, as ratios."""

from __future__ import annotations

import json
import os
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import millstream as ms
from millstream.spark.session import open_session, stop_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).parent
ROWS, KEYS, USERS, RUNS = 4_000_000, 1_000, 400_000, 3
SUMS = {"n": "count(*)", "total": "sum(amount)", "top": "max(amount)"}
DISTINCT = {"users": "count(DISTINCT user)"}


def rows(spark: SparkSession, *, hot: bool) -> DataFrame:
    key = F.col("id") % KEYS
    if hot:
        key = F.when(F.col("id") % 10 < 9, F.lit(0)).otherwise(key)
    user = F.pmod(F.xxhash64("id"), F.lit(USERS))
    spread = spark.range(0, ROWS, 1, 4)
    return spread.select(key.alias("key"), user.alias("user"), (F.col("id") % 97).alias("amount"))


def took(answer: Callable[[], DataFrame]) -> float:
    times = []
    for _ in range(RUNS + 1):
        began = time.monotonic()
        answer().write.format("noop").mode("overwrite").save()
        times.append(time.monotonic() - began)
    return statistics.median(times[1:])


def main() -> None:
    spark = open_session("skew", master="local[2]")
    even, hot = rows(spark, hot=False).cache(), rows(spark, hot=True).cache()
    even.count(), hot.count()
    in_one = {name: F.expr(text).alias(name) for name, text in SUMS.items()}
    whole = F.size(F.collect_set("user")).alias("users")
    ways = {
        "sums, even": lambda: even.groupBy("key").agg(*in_one.values()),
        "sums, hot": lambda: hot.groupBy("key").agg(*in_one.values()),
        "sums, hot, salted": lambda: ms.salted(hot, "key", SUMS),
        "distinct as a stream keeps it, hot": lambda: hot.groupBy("key").agg(whole),
        "distinct, hot, salted": lambda: ms.salted(hot, "key", DISTINCT),
    }
    seconds = {name: took(way) for name, way in ways.items()}
    stop_session(spark)
    names = list(ways)
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": ROWS,
        "load before": round(os.getloadavg()[0], 1),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "sums: hot to even, Spark alone": round(seconds[names[1]] / seconds[names[0]], 2),
        "sums, hot: Spark alone to salted": round(seconds[names[1]] / seconds[names[2]], 2),
        "distinct, hot: one stage to salted": round(seconds[names[3]] / seconds[names[4]], 2),
    }
    print(json.dumps(report, indent=2), flush=True)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "skew.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
