"""Impressions and clicks: which ads are clicked within an hour, and which are not.

impressions  every ad that was shown, up to 2 hours late, with a verdict
clicks       every click, up to 3 hours late, with a verdict
answered     each click with the impression it belongs to, as soon as both are there
outcome      each impression with its clicks, or without, once no click can come any more
by_campaign  shown and clicked by campaign and quarter of an hour, each window when it is final
shown_to     who is shown a campaign most often, by hour, in a few kilobytes however many users
capped       users who have seen a campaign so often that they are shown it no more this hour
rate         a model: how probable a click is, by campaign and time of day
expected     for each campaign and hour, the clicks that the model expected and those that came

A generated record stands for one second, or ten: a minute of running is more than eight hours.
"""

import random
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, functions as F

import millstream as ms

CAMPAIGNS = ("boots", "coffee", "lamps", "tents")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3600
RATES = {"boots": 0.1, "coffee": 0.6, "lamps": 0.2, "tents": 0.3}
"""How often a campaign is clicked, compared with others."""
EVENING = 18
CAP = 20
"""How often a user is shown a campaign in an hour."""
USERS = ms.sketch.HeavyHitters(k=20, error=0.002)

app = ms.App("ads")


def shown_at(number: int) -> datetime:
    """Return the time of an impression: one a second; one in a hundred is up to 2 hours late."""
    dice = random.Random(number)
    late = dice.randrange(2 * HOUR) if dice.random() < 0.01 else 0
    return BEGAN + timedelta(seconds=number - late)


def campaign_of(number: int) -> str:
    """Return what an impression was for."""
    return random.Random(f"campaign {number}").choice(CAMPAIGNS)


def impression(dice: random.Random, number: int) -> dict[str, object]:
    """Generate an impression."""
    user = f"u{int(dice.paretovariate(0.5)) % 1000}"
    shown = {"impression": number, "campaign": campaign_of(number), "user": user}
    return {**shown, "at": shown_at(number).isoformat()}


def is_liked(number: int) -> float:
    """Return how often an impression is clicked, compared with others."""
    return RATES[campaign_of(number)] * (2 if shown_at(number).hour >= EVENING else 1)


def click(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a click on an impression of the last hour; some take longer than an hour."""
    seen = [max(0, number * 10 - dice.randrange(HOUR)) for _ in range(4)]
    clicked = dice.choices(seen, [is_liked(one) for one in seen])[0]
    after = timedelta(minutes=dice.expovariate(1 / 20))
    return {"impression": clicked, "at": (shown_at(clicked) + after).isoformat()}


@app.source(event_time="at", watermark="2 hours")
def impressions() -> ms.Generator:
    """Ads that were shown."""
    return ms.Generator(
        schema="impression BIGINT NOT NULL, campaign STRING NOT NULL, user STRING, at TIMESTAMP",
        make=impression,
        rate=500,
        seed=1,
    )


@app.source(event_time="at", watermark="3 hours")
def clicks() -> ms.Generator:
    """Ads that were clicked."""
    return ms.Generator(
        schema="impression BIGINT NOT NULL, at TIMESTAMP", make=click, rate=50, seed=2
    )


@app.table
def answered(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """Impressions that were clicked within an hour, at once."""
    return ms.join_within(impressions, clicks, on="impression", within="1 hour")


@app.table
def outcome(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """Every impression with its clicks; one without a click comes out when none can come."""
    return ms.join_within(impressions, clicks, on="impression", within="1 hour", how="left")


@app.table
def by_campaign(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """How many impressions were clicked; one that is clicked several times counts once."""
    seen = ms.join_within(impressions, clicks, on="impression", within="1 hour", how="semi")
    clicked = seen.select("campaign", "at", F.lit(1).alias("clicked"))
    shown = impressions.select("campaign", "at", F.lit(0).alias("clicked"))
    quarter = F.window("at", "15 minutes").alias("quarter")
    return (
        shown.unionAll(clicked)
        .groupBy("campaign", quarter)
        .agg(
            F.sum(1 - F.col("clicked")).alias("shown"),
            F.sum("clicked").alias("clicked"),
        )
    )


@app.table(mode="update", key=["campaign", "hour"])
def shown_to(impressions: DataFrame) -> DataFrame:
    """Who is shown a campaign most often."""
    hour = F.window("at", "1 hour").start.alias("hour")
    known = impressions.where("user IS NOT NULL")
    return known.groupBy("campaign", hour).agg(USERS.of("user").alias("users"))


@app.table(mode="complete")
def capped(shown_to: DataFrame) -> DataFrame:
    """Users who have certainly seen a campaign as often as the cap allows."""
    one = shown_to.select("campaign", "hour", F.explode("users.top").alias("one"))
    return one.where(F.col("one.lower") >= CAP).select(
        "campaign",
        "hour",
        F.col("one.item").alias("user"),
        F.col("one.lower").alias("at_least"),
    )


@app.view
def labelled(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """Each impression, and whether it was clicked; one that was clicked twice comes twice."""
    known = ms.join_within(impressions, clicks, on="impression", within="1 hour", how="left")
    return known.select(
        *("impression", "campaign", "at"),
        (F.hour("at") >= EVENING).alias("evening"),
        F.col("at_right").isNotNull().alias("clicked"),
    )


@app.model(
    learner=ms.learn.LogisticRegression(half_life="1 day"),
    label="clicked",
    features=["campaign", "evening"],
    every="1 hour",
)
def rate(labelled: DataFrame) -> DataFrame:
    """Learn from all impressions which are clicked; older ones count less and less."""
    return labelled


@app.table(mode="update", key=["campaign", "hour"])
def expected(rate: DataFrame) -> DataFrame:
    """How many clicks the model expected of impressions that it had not learnt."""
    scored = rate.where("score IS NOT NULL")
    return scored.groupBy("campaign", F.window("at", "1 hour").alias("hour")).agg(
        F.count("*").alias("shown"),
        F.round(F.sum("score"), 1).alias("expected"),
        F.count_if("clicked").alias("clicked"),
    )
