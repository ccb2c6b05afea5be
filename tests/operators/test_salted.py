from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.faults import raises

import millstream as ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COUNTS = {"n": "count(*)", "xs": "count(x)", "kinds": "count(DISTINCT x)", "total": "sum(x)"}


def test_no_rows_are_counted_as_none(spark: SparkSession) -> None:
    nothing = spark.createDataFrame([], "k STRING, x INT")

    [row] = ms.salted(nothing, [], COUNTS).collect()

    assert tuple(row) == (0, 0, 0, None)


def test_columns_that_have_no_hash_and_one_called_as_the_salt_do_no_harm(
    spark: SparkSession,
) -> None:
    rows = spark.range(100).selectExpr("id % 2 AS _salt", "map(id, id) AS m")
    deep = rows.select("_salt", F.array("m").alias("ms"), F.struct("m").alias("s"), "m")

    counted = ms.salted(deep, "_salt", {"n": "count(*)"}, salts=4)

    assert sorted(map(tuple, counted.collect())) == [(0, 50), (1, 50)]


@pytest.mark.parametrize(
    ("aggregates", "why"),
    [
        ({"mean": "avg(CAST(x AS DECIMAL(20, 6)))"}, "rounded by rules of its own"),
        ({"K": "count(*)"}, "the answer would have 'k' twice"),
        ({}, "nothing is to be worked out"),
        ("count(*)", "not aggregates by name"),
        ({"n": F.lit}, "not each is a text"),
    ],
)
def test_what_would_not_be_exact_or_has_no_name_is_refused(
    spark: SparkSession, aggregates: Any, why: str
) -> None:
    rows = spark.createDataFrame([], "k STRING, x INT")

    with raises("OPERATOR_OPTION", match=why) as caught:
        ms.salted(rows, "k", aggregates)

    assert caught.value.at is not None
    assert caught.value.at.file.endswith("test_salted.py")
