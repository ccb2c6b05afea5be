"""Sketches: the rules are in docs/how-to/sketches.md; what is exact comes from plain Python."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import datasketches
import pytest
from pyspark.sql import functions as F
from tests.faults import raises
from tests.operators.sketches import (
    DURATION,
    PAGES,
    VISITORS,
    few_visits,
    frame_of,
    merged,
    site,
    summed_up,
    visits,
    wrong,
)

import millstream as ms
from millstream.sql import sketch as without_jvm
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = 60


@pytest.fixture(scope="module")
def arrived(spark: SparkSession) -> DataFrame:
    return frame_of(spark, visits(STREAMS, 11))


@pytest.mark.spark
def test_exact_answers_are_within_the_bounds_and_merged_sketches_are_those_of_the_whole(
    arrived: DataFrame,
) -> None:
    rows, faults = visits(STREAMS, 11), Counter[str]()

    per_stream = summed_up(arrived, "stream").cache()
    for row in per_stream.collect():
        faults += wrong(row, [one for one in rows if one[0] == row.stream])
    halves = merged(per_stream.withColumn("half", F.col("stream") % 2), "half").collect()
    for row in halves:
        faults += wrong(row, [one for one in rows if one[0] % 2 == row.half])

    assert faults["distinct"] <= 10, "more than 5 % of 62, and what is above that by chance"
    assert faults["quantiles"] <= 8
    assert faults["ranks"] <= 8
    whole = summed_up(arrived.withColumn("half", F.col("stream") % 2), "half").collect()
    assert {row.half: row.visitors for row in whole} == {row.half: row.visitors for row in halves}


@pytest.mark.spark
def test_the_bytes_of_both_languages_are_read_by_the_other(
    spark: SparkSession, arrived: DataFrame
) -> None:
    rows = visits(STREAMS, 11)
    per_stream = summed_up(arrived, "stream").collect()

    for row in per_stream:
        theta, kll = bytes(row.visitors.theta), bytes(row.duration.kll)
        reported = without_jvm.distinct_estimate(theta)
        assert reported == row.visitors.asDict() | {"theta": theta}
        assert without_jvm.theta_union([theta], VISITORS.lg_k) == theta or row.visitors.upper < 2
        found = without_jvm.kll_quantiles(kll, [0.1, 0.5, 0.99])
        assert found == [point.estimate for point in row.duration.quantiles]

    written = []
    for stream in range(STREAMS):
        mine = [one for one in rows if one[0] == stream]
        theta_of = datasketches.update_theta_sketch(VISITORS.lg_k)
        kll_of = datasketches.kll_doubles_sketch(DURATION.k)
        for _, visitor, seconds, _ in mine:
            theta_of.update(visitor)
            kll_of.update(seconds)
        theta = without_jvm.theta_union([theta_of.compact().serialize()], VISITORS.lg_k)
        written.append((stream, bytearray(theta), bytearray(kll_of.serialize()), len(mine)))
    read = spark.createDataFrame(written, "stream INT, theta BINARY, kll BINARY, n INT").selectExpr(
        "stream", "theta_sketch_estimate(theta) AS found", "n",
        "kll_sketch_get_n_double(kll) AS counted",
        "kll_sketch_get_quantile_double(kll, 0.5D) AS median", "kll",
    ).collect()  # fmt: skip
    estimates = {row.stream: row.visitors.estimate for row in per_stream}
    for row in read:
        assert row.found == estimates[row.stream]
        assert row.counted == row.n
        assert [row.median] == without_jvm.kll_quantiles(bytes(row.kll), [0.5])


@pytest.mark.spark
def test_sets_of_values_are_united_intersected_and_subtracted(spark: SparkSession) -> None:
    numbers = spark.range(40_000)
    sets = numbers.agg(
        VISITORS.of(F.when(F.col("id") < 30_000, F.col("id"))).alias("a"),
        VISITORS.of(F.when(F.col("id") >= 20_000, F.col("id"))).alias("b"),
        VISITORS.of(F.when(F.col("id") < 0, F.col("id"))).alias("none"),
    )
    pairs = {
        "either": VISITORS.union("a", "b"),
        "both": VISITORS.intersection("a", "b"),
        "rest": VISITORS.difference("a", "b"),
        "nothing": VISITORS.intersection("a", "none"),
        "all": VISITORS.difference("a", "none"),
    }

    row = sets.select(
        "a", "b", "none", *(value.alias(name) for name, value in pairs.items())
    ).first()

    assert row is not None
    for name, exact in {"either": 40_000, "both": 10_000, "rest": 20_000, "all": 30_000}.items():
        assert row[name].lower <= exact <= row[name].upper, name
    assert row.none.upper == row.nothing.upper == 0
    a, b = bytes(row.a.theta), bytes(row.b.theta)
    for name, theta in {
        "either": without_jvm.theta_union([a, b], VISITORS.lg_k),
        "both": without_jvm.theta_intersection(a, b),
        "rest": without_jvm.theta_difference(a, b),
    }.items():
        reported = without_jvm.distinct_estimate(theta)
        assert reported is not None
        assert [reported[n] for n in ("estimate", "lower", "upper")] == [*row[name][:3]], name


@pytest.mark.spark
def test_how_often_a_value_is_there_is_within_bounds(arrived: DataFrame) -> None:
    counts = Counter(page for *_, page in visits(STREAMS, 11))
    pages = ["/1", "/2", "/7", "/30", "/499", "/none"]
    summed = summed_up(arrived)

    row = summed.select(*(PAGES.frequency("pages", page).alias(page) for page in pages)).first()

    assert row is not None
    for page in pages:
        assert row[page].lower <= counts[page] <= row[page].upper, page
        assert row[page].lower <= row[page].estimate <= row[page].upper
    assert row["/1"].lower > 0.9 * counts["/1"]
    assert row["/none"].lower == 0


@pytest.mark.spark
def test_no_rows_and_nulls_have_estimates_too(spark: SparkSession) -> None:
    empty = spark.createDataFrame([(None, None, None)], "visitor INT, seconds DOUBLE, page STRING")

    row = summed_up(empty).select(
        "*", DURATION.value("duration", 0.5).alias("p"), DURATION.rank("duration", 1.0).alias("r")
    ).first()  # fmt: skip

    assert row is not None
    assert (*row.visitors[:3],) == (0, 0, 0)
    assert (row.duration.total, row.duration.quantiles, row.p, row.r) == (0, [], None, None)
    assert [one.item for one in row.pages.top] in ([], [None])


@pytest.mark.spark
@pytest.mark.long
def test_streams_of_sketches_are_as_batches(spark: SparkSession) -> None:
    app, rows = site(), few_visits(random.Random(2))

    assert_prefix_consistent(app, rows, runs=2, seed=5, spark=spark)


def test_errors_that_no_sketch_has_are_refused() -> None:
    for wrong_error in (0, 1, -0.1, float("nan"), "0.1", True):
        with raises("OPERATOR_OPTION", match="not an error that a sketch can have"):
            ms.sketch.Distinct(error=wrong_error)  # type: ignore[arg-type]
    with raises("OPERATOR_OPTION", match="not ranks"):
        ms.sketch.Quantiles(at=(50,))
    with raises("OPERATOR_OPTION", match="not a number of values"):
        ms.sketch.HeavyHitters(k=0)


def test_sizes_follow_from_the_errors() -> None:
    assert [ms.sketch.Distinct(error=e).lg_k for e in (0.1, 0.05, 0.02, 0.01)] == [9, 11, 14, 16]
    assert [ms.sketch.Quantiles(error=e).k for e in (0.02, 0.01)] == [132, 269]
    assert ms.sketch.HeavyHitters(error=0.001).tracked == 3072
