"""The most frequent hashtags: over the last minute, every five seconds.

posts        every post, with a verdict
spoken       each hashtag of a post, once per post
trending     the five most frequent hashtags of each minute, a minute every five seconds
by_language  how often each hashtag was used, by language, kept up to date
ever         the five most frequent hashtags of each language so far, kept up to date
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

TAGS = ("coffee", "football", "jazz", "maps", "rain", "robots", "trains", "tulips")
LANGUAGES = ("de", "en", "fr")

app = ms.App("hashtags")


def post(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a post with up to three hashtags; the most frequent one changes over time."""
    fashion = number // 3000 % len(TAGS)
    weights = [4 if n == fashion else 1 for n in range(len(TAGS))]
    tags = " ".join(f"#{tag}" for tag in dice.choices(TAGS, weights, k=dice.randrange(4)))
    return {"post": number, "language": dice.choice(LANGUAGES), "text": f"Look at this {tags}"}


@app.source(event_time="at", watermark="10 seconds")
def posts() -> ms.Generator:
    """Posts, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="post BIGINT NOT NULL, language STRING NOT NULL, text STRING NOT NULL, at TIMESTAMP",
        make=post,
        event_time="at",
        rate=300,
        seed=9,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@app.table
def spoken(posts: DataFrame) -> DataFrame:
    """A post that arrives twice counts once, and so does a hashtag that is in a post twice."""
    tags = F.array_distinct(F.regexp_extract_all(F.lower("text"), F.lit(r"#(\w+)"), 1))
    once = ms.dedup(posts, ["post", "at"])
    return once.select("language", "at", F.explode(tags).alias("tag"))


@app.table
def trending(spoken: DataFrame) -> DataFrame:
    """A minute, every five seconds; each comes out when it is final."""
    minute = F.window("at", "1 minute", "5 seconds").alias("minute")
    counts = spoken.groupBy(minute, "tag").agg(F.count("*").alias("posts"))
    return ms.top_k(counts, by="posts", k=5, per="minute")


@app.table(mode="update", key=["language", "tag"])
def by_language(spoken: DataFrame) -> DataFrame:
    """How often each hashtag was used."""
    return spoken.groupBy("language", "tag").agg(F.count("*").alias("posts"))


@app.table(mode="complete")
def ever(by_language: DataFrame) -> DataFrame:
    """The most frequent hashtags; recomputed whenever a count changes."""
    return ms.top_k(by_language, by="posts", k=5, per="language")
