"""Random streams and their sketches, and what is wrong with the bounds of these."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import millstream as ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Visit = tuple[int, int, float, str]
"""The number of a stream, a visitor, seconds and a page."""

VISITORS = ms.sketch.Distinct(error=0.1)
DURATION = ms.sketch.Quantiles(error=0.03, at=(0.1, 0.5, 0.99))
PAGES = ms.sketch.HeavyHitters(k=5, error=0.01)


def visits(streams: int, seed: int) -> list[Visit]:
    """Rows of streams from a few values to thousands of them."""
    dice = random.Random(f"visits {seed}")
    rows = []
    for stream in range(streams):
        for _ in range(dice.choice((1, 5, 100, 1200))):
            page = f"/{int(dice.paretovariate(0.8)) % 500}"
            rows.append((stream, dice.randrange(10**9), dice.lognormvariate(0, 2), page))
    return rows


def frame_of(spark: SparkSession, rows: list[Visit]) -> DataFrame:
    columns = "stream INT, visitor INT, seconds DOUBLE, page STRING"
    return spark.createDataFrame(rows, columns).repartition(3).cache()


def summed_up(rows: DataFrame, *by: str) -> DataFrame:
    return rows.groupBy(*by).agg(
        VISITORS.of("visitor").alias("visitors"),
        DURATION.of("seconds").alias("duration"),
        PAGES.of("page").alias("pages"),
    )


def merged(rows: DataFrame, *by: str) -> DataFrame:
    return rows.groupBy(*by).agg(
        VISITORS.merged("visitors").alias("visitors"),
        DURATION.merged("duration").alias("duration"),
        PAGES.merged("pages").alias("pages"),
    )


def wrong(row: Any, streams: list[Visit]) -> Counter[str]:
    """Count the bounds of a row that do not hold for its streams."""
    found = Counter[str]()
    number = len({visitor for _, visitor, *_ in streams})
    found["distinct"] += not row.visitors.lower <= number <= row.visitors.upper
    seconds = sorted(second for *_, second, _ in streams)
    assert row.duration.total == row.pages.total == len(streams)
    for point in row.duration.quantiles:
        exact = seconds[max(0, -(-int(point.rank * 10**9) * len(seconds) // 10**9) - 1)]
        found["quantiles"] += not point.lower <= exact <= point.upper
        share = bisect_left(seconds, point.estimate), bisect_right(seconds, point.estimate)
        low, high = (place / len(seconds) for place in share)
        found["ranks"] += not low - 0.03 <= point.rank <= high + 0.03
    pages = Counter(page for *_, page in streams)
    for one in row.pages.top:
        assert one.lower <= pages[one.item] <= one.upper
    listed, off = {one.item for one in row.pages.top}, 0.01 * len(streams)
    for page, count in pages.items():
        # Others that are nearly as frequent may come before it.
        before = sum(other >= count - off for one, other in pages.items() if one != page)
        if count > 2 * off and before < PAGES.k:
            assert page in listed
    return found


def site() -> ms.App:
    """An app with every sketch and sample."""
    app = ms.App("site")

    @app.source(event_time="at", watermark="20 seconds")
    def visits() -> ms.Memory:
        return ms.Memory("at TIMESTAMP, visitor STRING, seconds DOUBLE, page STRING")

    @app.table(mode="update", key=["w"])
    def per_window(visits: DataFrame) -> DataFrame:
        return summed_up(visits.withColumn("w", F.window("at", "10 seconds").start), "w")

    @app.table
    def closed(visits: DataFrame) -> DataFrame:
        windowed = visits.withColumn("w", F.window("at", "10 seconds"))
        return windowed.groupBy("w").agg(VISITORS.of("visitor").alias("visitors"))

    @app.table(mode="complete")
    def whole(per_window: DataFrame) -> DataFrame:
        return merged(per_window)

    @app.table(mode="update", key=["page", "place"])
    def some(visits: DataFrame) -> DataFrame:
        return ms.sampling.reservoir(visits, 2, per="page", by=["visitor", "at"])

    @app.table
    def sampled(visits: DataFrame) -> DataFrame:
        return ms.sampling.sample(visits, 0.5, by="visitor")

    @app.table
    def seen(visits: DataFrame) -> DataFrame:
        return ms.dedup(visits, ["visitor", "at"], error=0.001, remembers=3_000)

    return app


def few_visits(dice: random.Random) -> list[dict[str, Any]]:
    """Rows of a run of the test kit; some come twice."""
    rows = [
        {
            "at": f"12:00:{dice.randrange(60):02d}",
            "visitor": f"v{number}",
            "seconds": float(number),
            "page": dice.choice("ab"),
        }
        for number in range(11)
    ]
    return [*rows, *dice.sample(rows, 3)]
