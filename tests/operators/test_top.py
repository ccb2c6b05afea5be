"""The greatest rows of groups, against the rule in docs/how-to/event-time.md in plain Python."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pyspark.sql import functions as F
from tests.operators.apps import counted, only, rows_of

import millstream as ms
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Row = tuple[Any, ...]
COLUMNS = "g STRING, a DOUBLE, b STRING, c INT"


def least_first(value: Any) -> tuple[int, Any]:
    """A null is less than any value, and NaN more than any."""
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value.encode() if isinstance(value, str) else value)


def ranked(rows: list[Row], k: int, ties: str) -> list[Row]:
    """The first k by a and c, then b; or all that fewer than k rows are greater than."""
    found = []
    for g in {row[0] for row in rows}:
        ordered = [
            (tuple(map(least_first, (a, c))), least_first(b), (g_, a, b, c))
            for g_, a, b, c in rows
            if g_ == g
        ]
        ordered.sort(key=lambda one: one[:2], reverse=True)
        for place, (by, _, row) in enumerate(ordered, 1):
            rank = 1 + sum(other > by for other, _, _ in ordered) if ties == "all" else place
            if rank <= k:
                found.append((*row, rank))
    return sorted(found, key=str)


@pytest.mark.parametrize("ties", ["cut", "all"])
def test_ranks_are_those_of_the_rule_for_nulls_nan_and_rows_that_are_equal(
    spark: SparkSession, ties: Literal["cut", "all"]
) -> None:
    dice = random.Random(5)
    values = {
        "a": (None, math.nan, -math.inf, 0.5, 1.0, 2.0),
        "b": (None, "", "Z", "a", "ä", "€", "𝄞"),
        "c": (None, -1, 0, 1),
    }
    # Every group is a case of its own.
    rows = [
        (f"g{n}", *map(dice.choice, values.values()))
        for n in range(2_000)
        for _ in range(dice.randrange(1, 8))
    ]
    frame = spark.createDataFrame(rows, COLUMNS)

    for k in (1, 2, 5):
        found = ms.top_k(frame, by=["a", "c"], k=k, per="g", ties=ties).collect()
        by_group: dict[Any, list[Row]] = {}
        for row in rows:
            by_group.setdefault(row[0], []).append(row)
        wanted = [one for group in by_group.values() for one in ranked(group, k, ties)]
        assert sorted(map(str, map(tuple, found))) == sorted(map(str, wanted))


def test_all_rows_are_one_group_and_no_rows_are_none(spark: SparkSession) -> None:
    rows = spark.range(4).select((F.col("id") % 2).alias("n"), "id")

    found = ms.top_k(rows, by="n", k=1, ties="all").collect()

    assert sorted(map(tuple, found)) == [(1, 1, 1), (1, 3, 1)]
    assert ms.top_k(rows.limit(0), by="n", k=1, ties="all").collect() == []


@pytest.mark.long
def test_ranks_with_ties_are_prefix_consistent(spark: SparkSession) -> None:
    rows = only(rows_of(random.Random(3), 24), "shown")
    assert_prefix_consistent(counted(), rows, runs=3, spark=spark)
