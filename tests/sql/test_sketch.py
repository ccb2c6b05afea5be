"""Sketches of stored tables: DuckDB answers as Spark does, and people read estimates."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.apps import READING, reading, run, timed
from tests.faults import raises

import millstream as ms
from millstream.lake.home import Home
from millstream.sql import query
from millstream.sql.answer import read_rows
from millstream.sql.limits import Limits
from millstream.sql.spark_query import SparkEngine
from millstream.systems.memory.source import Memory
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.spark

QUERIES = (
    "SELECT g, distinct_estimate(theta_union_agg(ids.theta, 9)) AS ids FROM stored GROUP BY g",
    "SELECT theta_sketch_estimate(theta_union_agg(ids.theta)) AS ids FROM stored",
    "SELECT theta_sketch_estimate(theta_union_agg(ids.theta, 9) FILTER (WHERE g > 9)) AS ids "
    "FROM stored",
    "SELECT distinct_estimate(theta_union(a.ids.theta, b.ids.theta, 9)).upper AS either, "
    "distinct_estimate(theta_intersection(a.ids.theta, b.ids.theta)).lower AS both, "
    "theta_sketch_estimate(theta_difference(a.ids.theta, b.ids.theta)) AS only_a "
    "FROM stored a JOIN stored b ON a.g + 1 = b.g",
    "SELECT g, kll_sketch_get_n_double(speeds.kll) AS n, "
    "kll_sketch_get_quantile_double(speeds.kll, 0.5) AS median, "
    "kll_sketch_get_quantile_double(speeds.kll, array(0.1, 0.9)) AS most, "
    "kll_sketch_get_rank_double(speeds.kll, 10.0) AS slow FROM stored",
    "SELECT kll_sketch_get_n_double(kll_merge_agg_double(speeds.kll)) AS n FROM stored",
    "SELECT kll_sketch_get_n_double(kll_sketch_merge_double(speeds.kll, speeds.kll)) AS n "
    "FROM stored",
    "SELECT g, approx_top_k_estimate(names.items, 3) AS names, "
    "approx_top_k_estimate(counts.items, 3) AS counts FROM stored",
    "SELECT approx_top_k_estimate(approx_top_k_combine(names.items, 48), 4) AS names, "
    "approx_top_k_estimate(approx_top_k_combine(counts.items, 48), 4) AS counts, "
    "approx_top_k_estimate(approx_top_k_combine(most.items, 48), 4) AS most, "
    "approx_top_k_estimate(approx_top_k_combine(longs.items, 48), 4) AS longs FROM stored",
    "SELECT g, ids.estimate, speeds.quantiles, most.top FROM stored",
)


def ranked(column: str) -> Column:
    """Return numbers of which each is there another number of times, and null is the last."""
    return F.nullif(F.floor(F.sqrt(F.col(column))), F.lit(0)).cast("double")


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Home:
    ids, speeds = ms.sketch.Distinct(error=0.1), ms.sketch.Quantiles(error=0.03)
    most, source = ms.sketch.HeavyHitters(k=2), Memory(READING)
    app, place = timed(source), tmp_path_factory.mktemp("sketches")

    @app.table(mode="complete")
    def stored(readings: DataFrame) -> DataFrame:
        return readings.groupBy((readings.id % 3).alias("g")).agg(
            ids.of("id").alias("ids"),
            speeds.of("speed").alias("speeds"),
            most.of(ranked("speed")).alias("most"),
            most.of(ranked("speed").cast("string")).alias("names"),
            most.of(ranked("speed").cast("int")).alias("counts"),
            most.of(ranked("speed").cast("bigint")).alias("longs"),
        )

    app.sql(
        "in_sql",
        "SELECT distinct_estimate(theta_sketch_agg(id, 9)) AS ids FROM readings",
        mode="complete",
    )
    source.add(*(reading(n, "12:00:00", float(n % 40)) for n in range(4000)))
    run(app, place)
    return Home.at(place)


def sorted_plain(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(json.dumps(json.loads(to_json(row))) for row in rows)


@pytest.mark.parametrize("text", QUERIES)
def test_both_engines_give_the_same_estimates(spark: SparkSession, home: Home, text: str) -> None:
    engine = SparkEngine.open(spark, home, Limits())
    names, rows = engine.run(text, lambda answer: (answer.columns, read_rows(answer, 100)))

    found, reported = query(home, text)

    assert found == names
    assert rows
    assert sorted_plain(reported) == sorted_plain(rows)


def test_people_read_estimates_and_no_bytes(home: Home) -> None:
    [(ids,)] = query(home, "SELECT ids FROM in_sql")[1]

    assert ids["lower"] <= 4000 <= ids["upper"]
    assert set(json.loads(to_json(ids))) == {"estimate", "lower", "upper"}


def test_without_datasketches_a_query_says_what_to_install(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)

    with raises("EXTRA_MISSING", match="datasketches"):
        query(home, QUERIES[1])
    assert query(home, "SELECT ids.estimate FROM in_sql")[1]
