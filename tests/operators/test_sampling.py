"""Samples: who is in them is a matter of chance, and the same chance every time.

Each test of a distribution is 1,000 runs in one job: a run is a part of the key, so each has other
hashes. Bounds are such that a right sampler fails one of a million such tests.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F
from tests.faults import raises

import millstream as ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

RUNS = 1000


def unlikely(chi_square: float, freedom: int) -> bool:
    """Whether so large or small a sum has less than one chance of a million (Wilson-Hilferty)."""
    spread = 2 / (9 * freedom)
    normal = ((chi_square / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return bool(abs(normal) > NormalDist().inv_cdf(1 - 0.5e-6))


@pytest.fixture(scope="module")
def drawn(spark: SparkSession) -> DataFrame:
    """A thousand runs over the same forty rows, of amounts from 1 to 40."""
    rows = spark.range(RUNS * 40).selectExpr("id DIV 40 AS run", "id % 40 AS n")
    return rows.selectExpr("run", "n", "CAST(n + 1 AS DOUBLE) AS amount").coalesce(2).cache()


def counts_of(rows: DataFrame) -> list[int]:
    """How often each of the forty rows was drawn."""
    found = {row.n: row["count"] for row in rows.groupBy("n").count().collect()}
    return [found.get(n, 0) for n in range(40)]


def deviation_of(counts: Sequence[int], chances: Sequence[float]) -> float:
    return sum(
        (count - RUNS * p) ** 2 / (RUNS * p * (1 - p))
        for count, p in zip(counts, chances, strict=True)
    )


def share_that_holds(estimates: DataFrame, total: float) -> float:
    within = F.col("e.lower").__le__(total) & F.col("e.upper").__ge__(total)
    return float(estimates.agg(F.avg(within.cast("int")).alias("share")).first()["share"])  # type: ignore[index]


def test_a_sample_keeps_every_row_at_the_same_rate_and_estimates_totals(drawn: DataFrame) -> None:
    sample = ms.sampling.sample(drawn, 0.3, by=["run", "n"])

    assert not unlikely(deviation_of(counts_of(sample), [0.3] * 40), 40)
    estimates = sample.groupBy("run").agg(ms.sampling.estimate("amount").alias("e"))
    assert 0.90 < share_that_holds(estimates, 820.0) < 0.98
    mean = estimates.agg(F.avg("e.estimate").alias("m")).first()
    assert mean is not None
    assert abs(mean.m - 820) < 12


def test_a_key_is_in_every_sample_of_its_seed_or_in_none(drawn: DataFrame) -> None:
    by_n = ms.sampling.sample(drawn, 0.5, by="n")
    again = ms.sampling.sample(drawn.orderBy(F.desc("n")), 0.5, by="n")
    other = ms.sampling.sample(drawn, 0.5, by="n", seed=1)
    smaller = ms.sampling.sample(drawn, 0.2, by="n")

    kept = counts_of(by_n)
    assert set(kept) == {0, RUNS}
    assert counts_of(again) == kept != counts_of(other)
    assert all(few <= many for few, many in zip(counts_of(smaller), kept, strict=True))


def test_strata_have_rates_of_their_own(drawn: DataFrame) -> None:
    strata = drawn.withColumn("stratum", F.when(F.col("n") < 30, "many").otherwise("few"))

    sample = ms.sampling.stratified(strata, {"many": 0.1}, per="stratum", by=["run", "n"])

    counts = counts_of(sample)
    assert not unlikely(deviation_of(counts[:30], [0.1] * 30), 30)
    assert counts[30:] == [RUNS] * 10
    assert {*sample.select("stratum", "weight").distinct().collect()} == {
        ("many", 10.0),
        ("few", 1.0),
    }
    none = ms.sampling.stratified(strata, {"few": 0.5}, per="stratum", by="n", default=0)
    assert sum(counts_of(none)[:30]) == 0


def test_large_amounts_are_drawn_in_proportion(drawn: DataFrame) -> None:
    sample = ms.sampling.weighted(drawn, "amount", every=50.0, by=["run", "n"])

    chances = [(n + 1) / 50 for n in range(40)]
    assert not unlikely(deviation_of(counts_of(sample), chances), 40)
    estimates = sample.groupBy("run").agg(ms.sampling.estimate("amount").alias("e"))
    assert 0.90 < share_that_holds(estimates, 820.0) < 0.99


def test_rows_without_an_amount_are_not_drawn(spark: SparkSession) -> None:
    amounts = [None, math.nan, -1.0, 0.0, 100.0]
    rows = spark.createDataFrame([*enumerate(amounts)], "n INT, amount DOUBLE")

    sample = ms.sampling.weighted(rows, "amount", every=50.0, by="n")

    assert sample.select("n", "weight").collect() == [(4, 1.0)]


def test_one_row_of_several_has_no_bounds(drawn: DataFrame) -> None:
    one = ms.sampling.reservoir(drawn.where("run = 0"), 1, by="n")

    found = one.agg(ms.sampling.estimate_of_reservoir("amount").alias("e")).first()

    assert found is not None
    assert found.e.estimate > 0
    assert (found.e.lower, found.e.upper) == (None, None)


def test_a_reservoir_draws_every_row_alike_and_merges_to_that_of_all(drawn: DataFrame) -> None:
    key = ["run", "n"]
    whole = ms.sampling.reservoir(drawn, 10, per="run", by=key).cache()

    counts = counts_of(whole)
    # Exactly ten of forty are drawn each time, so counts depend on each other a little.
    assert not unlikely(deviation_of(counts, [0.25] * 40) * 39 / 40, 39)
    assert sum(counts) == 10 * RUNS
    estimates = whole.groupBy("run").agg(ms.sampling.estimate_of_reservoir("amount").alias("e"))
    assert 0.90 < share_that_holds(estimates, 820.0) < 0.98

    parts = drawn.withColumn("part", F.col("n") % 3)
    stored = ms.sampling.reservoir(parts, 10, per=["run", "part"], by=key)
    merged = ms.sampling.reservoir(stored.drop("part"), 10, per="run", by=key)
    assert merged.select(*whole.columns).exceptAll(whole).isEmpty()
    assert merged.count() == whole.count()


def test_a_weighted_reservoir_prefers_large_amounts_and_estimates_their_total(
    drawn: DataFrame,
) -> None:
    kept = ms.sampling.weighted_reservoir(drawn, 10, amount="amount", per="run", by=["run", "n"])

    counts = counts_of(kept)
    assert sum(counts) == 10 * RUNS
    assert counts[39] > counts[20] > counts[10] > counts[0]
    estimates = kept.groupBy("run").agg(ms.sampling.estimate("amount").alias("e"))
    mean = estimates.agg(F.avg("e.estimate").alias("m")).first()
    assert mean is not None
    assert abs(mean.m - 820) < 8
    assert share_that_holds(estimates, 820.0) > 0.90


def test_few_rows_stand_for_themselves(drawn: DataFrame) -> None:
    few = drawn.where("run = 0 AND n < 5")

    for kept in (
        ms.sampling.reservoir(few, 10, by="n"),
        ms.sampling.weighted_reservoir(few, 10, amount="amount", by="n"),
        ms.sampling.sample(few, 1.0, by="n"),
    ):
        found = kept.agg(ms.sampling.estimate("amount").alias("e"), F.sum("weight").alias("w"))
        assert found.collect() == [((15.0, 15.0, 15.0), 5.0)]
    whole = ms.sampling.reservoir(few, 10, by="n").where("n = 0")
    found = whole.agg(ms.sampling.estimate_of_reservoir("amount").alias("e"))
    assert found.collect() == [((1.0, 1.0, 1.0),)]


def test_what_does_not_fit_is_refused(drawn: DataFrame) -> None:
    with raises("OPERATOR_OPTION", match="not a share"):
        ms.sampling.sample(drawn, 1.5, by="n")
    with raises("OPERATOR_OPTION", match="a row is chosen by its key"):
        ms.sampling.sample(drawn, 0.5, by=[])
    with raises("OPERATOR_COLUMN", match="which the rows do not have"):
        ms.sampling.reservoir(drawn, 3, by="id")
    with raises("OPERATOR_OPTION", match="not a number of rows"):
        ms.sampling.reservoir(drawn, 0, by="n")
    with raises("OPERATOR_COLUMN", match="which is what a sample calls the weight of a row"):
        ms.sampling.sample(drawn.withColumn("weight", F.lit(1)), 0.5, by="n")
    with raises("OPERATOR_OPTION", match="not an amount"):
        ms.sampling.weighted(drawn, "amount", every=0, by="n")
    with raises("OPERATOR_OPTION", match="not a share"):
        ms.sampling.estimate("amount", confidence=95.0)
