"""Rows of two streams near each other in time: ours, Spark's join by hand, and DuckDB.

With few keys many rows have the same key, and Spark's join looks at all of them for every row.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import millstream as ms
from bench.stream import in_all, run, session, stream_of, write_batches, write_report
from millstream.spark.session import stop_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.stream import Batch

BATCHES = 6
HOUR_US = 3_600_000_000
START_US = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
DUCK = """
    SELECT count(*), count(w.n) FROM '{left}/*.parquet' AS f
    LEFT JOIN '{right}/*.parquet' AS w
    ON f.key = w.key AND w.at BETWEEN f.at - INTERVAL 1 HOUR AND f.at
"""


@dataclass(frozen=True)
class Shape:
    """How many rows of how many keys, over how many hours."""

    left: int
    right: int
    keys: int
    hours: int
    runs: int


SHAPES = {
    "few keys": Shape(26_000, 2_200, 3, 732, 1),
    "many keys": Shape(120_000, 60_000, 20_000, 24, 1),
}


def ours(left: DataFrame, right: DataFrame) -> DataFrame:
    return ms.join_within(left, right, on="key", within=("1 hour", "0 s"), how="left")


def by_hand(left: DataFrame, right: DataFrame) -> DataFrame:
    one, other = left.alias("l"), right.alias("r")
    hour = F.expr("INTERVAL 1 HOUR")
    near = (F.col("r.at") >= F.col("l.at") - hour) & (F.col("r.at") <= F.col("l.at"))
    pairs = one.join(other, (F.col("l.key") == F.col("r.key")) & near, "left")
    return pairs.select("l.*", F.col("r.at").alias("at_right"), F.col("r.n").alias("n_right"))


def rows_of(dice: np.random.Generator, count: int, shape: Shape, number: int) -> pa.Table:
    """Make up one batch of one side: a part of the hours, in order."""
    share, span = count // BATCHES, shape.hours * HOUR_US // BATCHES
    us = START_US + number * span + np.sort(dice.integers(0, span, share))
    return pa.table(
        {
            "key": [f"key-{n:06d}" for n in dice.integers(0, shape.keys, share)],
            "at": pa.array(us, pa.timestamp("us", "UTC")),
            "n": pa.array(dice.integers(0, 1000, share), pa.int64()),
        }
    )


def last_of_all(shape: Shape) -> pa.Table:
    """Make up a row so late that all others are final."""
    late = START_US + (shape.hours + 1000) * HOUR_US
    at = pa.array([late], pa.timestamp("us", "UTC"))
    return pa.table({"key": ["last"], "at": at, "n": pa.array([1], pa.int64())})


def streamed(spark: SparkSession, way: Any, place: Path, again: int) -> list[Batch]:
    """Join the files of both sides, one of each a batch."""
    sides = (stream_of(spark, place / side) for side in ("left", "right"))
    left, right = (side.withWatermark("at", "10 minutes") for side in sides)
    return run(way(left, right), place / f"{way.__name__}-{again}")


def by_duckdb(place: Path) -> tuple[float, tuple[Any, ...] | None]:
    began = time.monotonic()
    query = DUCK.format(left=place / "left", right=place / "right")
    found = duckdb.connect(config={"threads": 2}).execute(query).fetchone()
    return time.monotonic() - began, found


def compared(spark: SparkSession, shape: Shape, place: Path) -> dict[str, Any]:
    """Join in every way, in turn, and check that the answers are equal."""
    dice = np.random.default_rng(1)
    for side, count in (("left", shape.left), ("right", shape.right)):
        made = [rows_of(dice, count, shape, number) for number in range(BATCHES)]
        write_batches(place / side, [*made, last_of_all(shape)])
    seconds: dict[str, list[float]] = {"ours": [], "by_hand": []}
    pairs = 0
    for again in range(shape.runs):
        answers = []
        for way in (ours, by_hand):
            batches = streamed(spark, way, place, again)
            seconds[way.__name__].append(sum(batch.seconds for batch in batches))
            answers.append(in_all(batches))
            print(f"{way.__name__}: {seconds[way.__name__][-1]:.1f} s", flush=True)
        assert answers[0] == answers[1]
        pairs = answers[0][0]
    duck, found = by_duckdb(place)
    assert found is not None
    # The last rows of both sides are a pair that the stream has found as well.
    assert abs(found[0] - pairs) <= 1, (found, pairs)
    taken = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "rows": [shape.left, shape.right],
        "keys": shape.keys,
        "answers": pairs,
        "ours, s": round(taken["ours"], 1),
        "by hand in Spark, s": round(taken["by_hand"], 1),
        "ratio": round(taken["by_hand"] / taken["ours"], 2),
        "DuckDB, in one batch, s": round(duck, 2),
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        spark = session(place)
        reported = {name: compared(spark, s, place / str(s.keys)) for name, s in SHAPES.items()}
        stop_session(spark)
    write_report("joins", reported)


if __name__ == "__main__":
    main()
