"""Joins within a time, whose rows Spark compares in buckets of time: against DuckDB."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tests.operators.apps import HOWS, joined, two_sources
from tests.operators.duck import Duck, in_order

import millstream as ms
from millstream.operators.joins.near import TimeBound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing import Script

pytestmark = pytest.mark.spark

S = 1_000_000
KEYS = 1_000
BOUNDS = ((0, 10 * S), (5 * S, 10 * S))
"""Of 1,000 cases each, one a key, in five kinds of join: 10,000 cases."""

Row = tuple[Any, ...]


def cases(
    dice: random.Random, before_us: int, after_us: int, first: int = -2
) -> tuple[list[Row], list[Row]]:
    """Rows of many keys at the ends of buckets, by default around 1970, and apart by a bound."""
    width = TimeBound(before_us, after_us).bucket_us
    shown, clicked = list[Row](), list[Row]()
    for key in range(KEYS):
        edges = [(first + dice.randrange(5)) * width + dice.choice((-1, 0, 0, 1)) for _ in range(2)]
        for _ in range(dice.randrange(5)):
            apart = dice.choice((0, after_us, -before_us, dice.randrange(-width, width)))
            us = dice.choice(edges) + apart + dice.choice((-1, 0, 0, 1))
            (shown if dice.random() < 0.5 else clicked).append((f"k{key}", us))
        shown.append((f"k{key}", edges[0]))
    left = [(*row, dice.choice("ab")) for row in shown]
    return left, [(*row, n) for n, row in enumerate(clicked)]


def table_of(rows: Sequence[Row], last: str) -> pa.Table:
    keys, us, values = (list(column) for column in zip(*rows, strict=True))
    at = pa.array(us, pa.timestamp("us", "UTC"))
    kind = pa.string() if last == "site" else pa.int32()
    return pa.table({"ad": keys, "at": at, last: pa.array(values, kind)})


def micros(found: DataFrame) -> list[Row]:
    times = {name for name, kind in found.dtypes if kind == "timestamp"}
    columns = [F.unix_micros(n).alias(n) if n in times else F.col(n) for n in found.columns]
    return in_order([tuple(row.values()) for row in found.select(*columns).toArrow().to_pylist()])


def within(bound: tuple[int, int]) -> tuple[str, str]:
    before, after = bound
    return f"{before // S} seconds", f"{after // S} seconds"


@pytest.mark.parametrize("bound", BOUNDS)
def test_rows_at_the_ends_of_buckets_are_joined_as_by_duckdb(
    spark: SparkSession, bound: tuple[int, int]
) -> None:
    shown, clicked = cases(random.Random(bound[0]), *bound)
    duck = Duck(shown, clicked)
    left, right = (
        spark.createDataFrame(table_of(rows, last))
        for rows, last in ((shown, "site"), (clicked, "n"))
    )

    for how in HOWS:
        found = ms.join_within(left, right, on="ad", within=within(bound), how=how)
        assert micros(found) == duck.joined(how, *bound), how


@pytest.mark.long
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("how", HOWS)
def test_a_stream_joins_rows_at_the_ends_of_buckets_as_duckdb_does_and_forgets_them(
    spark: SparkSession, tmp_path: Path, how: Any, bound: tuple[int, int]
) -> None:
    dice = random.Random(f"{how}{bound}")
    # To Spark, what comes before 1970 is late.
    shown, clicked = cases(dice, *bound, first=10_000)
    # A row that all others are final by, in a batch of its own.
    last = [("last", 10**14, "a")], [("last", 10**14, -1)]
    streams = []
    for rows, end, name in ((shown, last[0], "site"), (clicked, last[1], "n")):
        folder = tmp_path / name
        folder.mkdir()
        dice.shuffle(rows)
        for number, cut in enumerate((rows[:500], rows[500:600], rows[600:], end)):
            file = folder / f"{number}.parquet"
            pq.write_table(table_of(cut, name), file)
            os.utime(file, (number, number))
        read = spark.readStream.schema(spark.read.parquet(str(folder)).schema)
        stream = read.option("maxFilesPerTrigger", 1).parquet(str(folder))
        streams.append(stream.withWatermark("at", "10000 seconds"))

    found = ms.join_within(*streams, on="ad", within=within(bound), how=how)
    writer = found.writeStream.format("parquet").option("path", str(tmp_path / "found"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    run = query.trigger(availableNow=True).start()
    run.awaitTermination()

    answer = spark.read.schema(found.schema).parquet(str(tmp_path / "found"))
    wanted = Duck(shown, clicked).joined(how, *bound)
    assert micros(answer.where("ad <> 'last'")) == wanted
    assert run.lastProgress is not None
    [state] = run.lastProgress.stateOperators
    assert state.numRowsTotal <= 4  # of the last row, and its copies


def test_a_stream_goes_on_from_the_state_of_a_join_without_buckets(
    stream: Callable[..., Script],
) -> None:
    # A home of before: Spark's own join, as join_within wrote it.
    before = two_sources("joined")

    @before.table
    def left_join(shown: DataFrame, clicked: DataFrame) -> DataFrame:
        near = "c.at >= s.at AND c.at <= s.at + INTERVAL '10' SECOND AND s.ad = c.ad"
        pairs = shown.alias("s").join(clicked.alias("c"), F.expr(near), "left")
        return pairs.select(
            "s.ad", "s.at", "s.site", F.col("c.at").alias("at_right", metadata={}), "c.n"
        )

    with stream(before) as s:
        s.send("shown", ad="a", at="12:00:00", site="x")
        s.send("clicked", ad="b", at="12:00:08", n=1)
        s.batch()
        s.upgrade_to(joined("left", within="10 seconds"))
        s.send("shown", ad="b", at="12:00:00", site="y")
        s.send("clicked", ad="a", at="12:00:10", n=2)
        s.batch()
        s.crash()
        s.restart()
        s.send("shown", ad="later", at="12:10:00", site="z")
        s.send("clicked", ad="later", at="12:10:00", n=3)
        s.batch()

        found = sorted(s.table("left_join").rows("ad", "n"))
        assert found == [("a", 2), ("b", 1), ("later", 3)]
        s.assert_consistent()
