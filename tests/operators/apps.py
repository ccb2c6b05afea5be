"""Applications that use every operator by event time, and rows that meet its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as F

import millstream as ms

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

How = Literal["inner", "left", "right", "full", "semi"]
HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "semi")
SHOWN = "ad STRING, at TIMESTAMP, site STRING"
CLICKED = "ad STRING, at TIMESTAMP, n INT"


def two_sources(name: str) -> ms.App:
    app = one_source(name)

    @app.source(event_time="at", watermark="30 seconds")
    def clicked() -> ms.Memory:
        return ms.Memory(CLICKED)

    return app


def joined(*hows: How, within: str | tuple[str, str] = "10 seconds") -> ms.App:
    """Each kind of join as a table of its name."""
    app = two_sources("joined")

    def declare(how: How) -> None:
        @app.table(name=f"{how}_join")
        def answer(shown: DataFrame, clicked: DataFrame) -> DataFrame:
            return ms.join_within(shown, clicked, on="ad", within=within, how=how)

    for how in hows:
        declare(how)
    return app


def ending(*hows: How) -> ms.App:
    """Joins until an end that rows have themselves, and one without end."""
    app = two_sources("ending")

    def declare(how: How) -> None:
        @app.table(name=f"{how}_until")
        def answer(shown: DataFrame, clicked: DataFrame) -> DataFrame:
            lasts = F.expr("CASE site WHEN 'a' THEN INTERVAL 10 SECONDS END")
            ending = shown.withColumn("expires", F.col("at") + lasts)
            return ms.join_within(ending, clicked, on="ad", until="expires", how=how)

    for how in hows:
        declare(how)

    @app.table()
    def capped(shown: DataFrame, clicked: DataFrame) -> DataFrame:
        ending = shown.withColumn("expires", F.expr("at + INTERVAL 1 HOUR"))
        joined = ms.join_within(
            ending, clicked, on="ad", within="10 seconds", until="expires", how="left"
        )
        return joined.drop("expires")

    @app.table()
    def pairs(shown: DataFrame, clicked: DataFrame) -> DataFrame:
        return ms.join_within(shown, clicked, on="ad", unbounded=True)

    return app


def as_of() -> ms.App:
    """Each impression with the latest click before it."""
    app = two_sources("as_of")

    @app.table()
    def latest(shown: DataFrame, clicked: DataFrame) -> DataFrame:
        return ms.join_as_of(shown, clicked, on="ad")

    @app.table()
    def young(shown: DataFrame, clicked: DataFrame) -> DataFrame:
        return ms.join_as_of(shown, clicked, on="ad", within="10 seconds", how="inner")

    return app


def waiting() -> ms.App:
    """What is tried with every change: rows without a partner, and rows in order."""
    app = joined("full", within=("5 seconds", "10 seconds"))

    @app.table()
    def latest(shown: DataFrame, clicked: DataFrame) -> DataFrame:
        return ms.join_as_of(shown, clicked, on="ad", within="10 seconds")

    return app


def chained() -> ms.App:
    """What follows a join in the same query: another join, and windows."""
    app = two_sources("chained")

    @app.view
    def pairs(shown: DataFrame, clicked: DataFrame) -> DataFrame:
        return ms.join_within(shown, clicked, on="ad", within="10 seconds", how="left")

    @app.table()
    def again(pairs: DataFrame, clicked: DataFrame) -> DataFrame:
        return ms.join_within(
            pairs.drop("at_right"), clicked, on="ad", within="20 seconds", how="left"
        )

    @app.table()
    def per_window(pairs: DataFrame) -> DataFrame:
        window = F.window("at", "10 seconds").alias("window")
        return pairs.groupBy(window).agg(F.count("*").alias("shown"), F.count("n").alias("clicks"))

    return app


def one_source(name: str) -> ms.App:
    app = ms.App(name)

    @app.source(event_time="at", watermark="20 seconds")
    def shown() -> ms.Memory:
        return ms.Memory(SHOWN)

    return app


def counted() -> ms.App:
    """Repetitions left out, and the most frequent of each window."""
    app = one_source("counted")

    @app.table()
    def once(shown: DataFrame) -> DataFrame:
        return ms.dedup(shown, "ad", within="10 seconds")

    @app.table()
    def top(shown: DataFrame) -> DataFrame:
        window = F.window("at", "20 seconds", "10 seconds").alias("window")
        counts = shown.groupBy(window, "ad").agg(F.count("*").alias("n"))
        return ms.top_k(counts, by="n", k=2, per="window")

    @app.table()
    def tied(shown: DataFrame) -> DataFrame:
        windowed = shown.withColumn("window", F.window("at", "20 seconds"))
        return ms.top_k(windowed.drop("at"), by="site", k=2, per="window", ties="all")

    @app.table()
    def totals(shown: DataFrame) -> DataFrame:
        windowed = shown.withColumn("window", F.window("at", "20 seconds"))
        reported = {"rows": "count(*)", "ads": "count(DISTINCT ad)", "first": "min(at)"}
        return ms.salted(windowed, "window", reported, salts=3)

    @app.table(mode="update", key=["site", "rank"])
    def latest(shown: DataFrame) -> DataFrame:
        return ms.top_k(shown, by="at", k=2, per="site")

    return app


def windowed() -> ms.App:
    """Windows of every kind, once each is final, and as they change."""
    app = one_source("windowed")

    @app.table()
    def tumbling(shown: DataFrame) -> DataFrame:
        return shown.groupBy(F.window("at", "10 seconds"), "ad").count()

    @app.table(mode="update", key=["window"])
    def sliding(shown: DataFrame) -> DataFrame:
        return shown.groupBy(F.window("at", "20 seconds", "10 seconds")).count()

    @app.table()
    def sessions(shown: DataFrame) -> DataFrame:
        gap = F.when(F.col("site") == "a", "10 seconds").otherwise("5 seconds")
        return shown.groupBy("ad", F.session_window("at", gap).alias("session")).count()

    return app


def matched() -> ms.App:
    """What follows within a time, what does not, and windows over what was found."""
    app = one_source("matched")
    pattern = ms.pattern(key="ad", within="20 seconds", tie_by="site")
    pattern = pattern.step("first", "site = 'a'").step("last", "site = 'b'")

    @app.table()
    def found(shown: DataFrame) -> DataFrame:
        return ms.match(shown, pattern, select="ad, first.at AS at, last.at AS ended")

    @app.table()
    def missed(shown: DataFrame) -> DataFrame:
        return ms.absent(shown, pattern)

    @app.table()
    def per_window(found: DataFrame) -> DataFrame:
        return found.groupBy(F.window("at", "10 seconds")).count()

    return app


def clock(ms_past_noon: int) -> str:
    seconds, rest = divmod(ms_past_noon, 1000)
    return f"12:{seconds // 60:02d}:{seconds % 60:02d}.{rest:03d}"


def rows_of(dice: random.Random, count: int, ads: int = 3) -> dict[str, list[dict[str, Any]]]:
    """Rows, some without a key, whose distances are often exactly a bound, or a bit off it."""
    rows: dict[str, list[dict[str, Any]]] = {"shown": [], "clicked": []}
    for n in range(count):
        near = dice.choice((0, 0, 0, 1, -1, dice.randrange(-4000, 4000)))
        at = max(0, dice.randrange(12) * 10_000 + near)
        ad = None if dice.random() < 0.15 else f"ad{dice.randrange(ads)}"
        row = {"ad": ad, "at": clock(at)}
        if dice.random() < 0.5:
            rows["shown"].append(row | {"site": dice.choice("ab")})
        else:
            rows["clicked"].append(row | {"n": n})
    return rows


def only(rows: dict[str, list[dict[str, Any]]], *sources: str) -> dict[str, Sequence[Any]]:
    return {name: rows[name] for name in sources}
