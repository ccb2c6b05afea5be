"""Every operator in a batch over random rows, against DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as F
from tests.operators.apps import HOWS
from tests.operators.duck import Duck, in_order, once

import millstream as ms

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

S = 1_000_000
KEYS = 6


def frames(
    spark: SparkSession, dice: random.Random, count: int
) -> tuple[list[Any], list[Any], DataFrame, DataFrame]:
    """Rows with null keys among them, whose distances are often exactly a bound."""

    def key() -> str | None:
        return None if dice.random() < 0.02 else f"ad{dice.randrange(KEYS)}"

    def us() -> int:
        return (100 + dice.randrange(count)) * 10 * S + dice.choice(
            (0, 0, 1, -1, 5 * S, dice.randrange(S))
        )

    shown = [(key(), us(), dice.choice("abc")) for _ in range(count)]
    clicked = [(key(), us(), n) for n in range(count)]
    left = spark.createDataFrame(shown, "ad STRING, us BIGINT, site STRING")
    right = spark.createDataFrame(clicked, "ad STRING, us BIGINT, n INT")
    at = F.timestamp_micros("us").alias("at")
    return shown, clicked, left.select("ad", at, "site"), right.select("ad", at, "n")


def expires(lasts_us: Mapping[str, int]) -> Column:
    """The end of a row, so long after its time as its site says; of other sites there is none."""
    ends = [F.when(F.col("site") == site, us) for site, us in lasts_us.items()]
    return F.timestamp_micros(F.unix_micros("at") + F.coalesce(*ends))


def hold_joins(
    same: Callable[[DataFrame, list[Any]], None], duck: Duck, left: DataFrame, right: DataFrame
) -> None:
    """Compare joins by a bound, by an end that rows have themselves, and without one."""
    for how in HOWS:
        joined = ms.join_within(left, right, on="ad", within=("5 seconds", "10 seconds"), how=how)
        same(joined, duck.joined(how, 5 * S, 10 * S))
    ending = left.withColumn("expires", expires({"a": 10 * S, "b": -1}))
    for how in HOWS:
        for longest in (None, "5 seconds"):
            joined = ms.join_within(
                ending, right, on="ad", within=longest, until="expires", how=how
            ).drop("expires")
            longest_us = 5 * S if longest else 10**15
            same(joined, duck.joined_until(how, {"a": 10 * S, "b": -1}, longest_us))
    few = ms.join_within(left, right, on="ad", unbounded=True)
    same(few, duck.all_pairs())


def hold(spark: SparkSession, dice: random.Random, count: int) -> int:
    """Check every operator against DuckDB; return how many rows were compared."""
    shown, clicked, left, right = frames(spark, dice, count)
    duck, compared = Duck(shown, clicked), 0

    def same(found: DataFrame, wanted: list[Any]) -> None:
        nonlocal compared
        kinds = {name: kind for name, kind in found.dtypes if kind == "timestamp"}
        micros = [F.unix_micros(n).alias(n) if n in kinds else F.col(n) for n in found.columns]
        assert in_order(found.select(*micros).collect()) == wanted
        compared += len(wanted)

    hold_joins(same, duck, left, right)
    same(ms.join_as_of(left, right, on="ad"), duck.as_of())
    aged = ms.join_as_of(left, right, on="ad", within="20 seconds", how="inner")
    same(aged, [row for row in duck.as_of(20 * S) if row[3] is not None])
    same(ms.dedup(left, "ad", within="30 seconds"), once(shown, 30 * S))
    window = F.window("at", "200 seconds", "100 seconds").alias("window")
    counts = left.groupBy(window, "ad").agg(F.count("*").alias("n"))
    ties: Literal["cut", "all"]
    for ties in ("cut", "all"):
        top = ms.top_k(counts, by="n", k=2, per="window", ties=ties)
        ranked = top.select(F.col("window.start").alias("at"), "ad", "n", "rank")
        same(ranked, duck.top(2, 100 * S, ties))
    tumbling = left.groupBy(F.window("at", "30 seconds").alias("window"), "ad").count()
    same(tumbling.select(F.col("window.start").alias("at"), "ad", "count"), duck.tumbling(30 * S))
    session = F.session_window("at", "20 seconds").alias("session")
    sessions = left.where("ad IS NOT NULL").groupBy("ad", session).count()
    ends = (F.col(f"session.{end}").alias(end) for end in ("start", "end"))
    same(sessions.select("ad", *ends, "count"), duck.sessions(20 * S))
    aggregates = {"rows": "count(*)", "ns": "count(DISTINCT n)", "n": "sum(n)", "mean": "avg(n)"}
    same(ms.salted(right, "ad", aggregates, salts=3), duck.totals())
    return compared
