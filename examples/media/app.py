"""Media recommended: what viewers of a title also watch, and what a viewer may like next.

plays         every play, with a verdict
watched       each title of a viewer once, with the titles that they watched shortly before
together      how often two titles were watched by the same viewers: counts kept as state
also_watched  for each title the titles most often watched with it, in `media.db`
for_you       for each viewer titles that they have not watched yet, in `media.db`

`app.get("also_watched", title="Harbour")` and `app.get("for_you", viewer="ann")` read one row.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, functions as F

import millstream as ms

GENRES = {
    "crime": ("Harbour", "Night Train", "The Witness", "Cold Ink"),
    "comedy": ("Two Left Feet", "The Wedding Cake", "Next Door", "Room 12"),
    "nature": ("Tides", "The Last Glacier", "Owls", "Under the Oak"),
}
TITLES = tuple(title for titles in GENRES.values() for title in titles)
VIEWERS, REMEMBERED, SHOWN = 300, 5, 3
"""A title counts with the five that the viewer watched before it; three are recommended."""

app = ms.App("media")


def play(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a play; most viewers have a genre that they prefer."""
    viewer = dice.randrange(VIEWERS)
    preferred = [*GENRES.values()][viewer % len(GENRES)]
    title = dice.choice(preferred if dice.random() < 0.8 else TITLES)
    return {"play": number, "viewer": f"viewer-{viewer:03d}", "title": title}


@app.source(event_time="at", watermark="5 seconds")
def plays() -> ms.Generator:
    """Plays, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="play BIGINT NOT NULL, viewer STRING NOT NULL, title STRING NOT NULL, at TIMESTAMP",
        make=play,
        event_time="at",
        rate=200,
        seed=17,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@ms.stateful(
    key="viewer",
    state="titles ARRAY<STRING>",
    emits="viewer STRING, title STRING, before ARRAY<STRING>, at TIMESTAMP",
    ttl="365 days",
)
def history(
    viewer: str, rows: Sequence[Any], state: Any, _: ms.Timer
) -> Iterator[dict[str, object]]:
    """Return a title when a viewer watches it first, with those watched shortly before."""
    for row in rows:
        if row.title not in state.titles:
            before = state.titles[-REMEMBERED:]
            yield {"viewer": viewer, "title": row.title, "before": before, "at": row.at}
            state.titles = [*state.titles, row.title]


@app.table
def watched(plays: DataFrame) -> DataFrame:
    """Each title of a viewer once, in the order of the plays: a play sent twice changes nothing."""
    return history(plays)


@app.table(mode="update", key=["title", "other"])
def together(watched: DataFrame) -> DataFrame:
    """Viewers who watched both; each pair of titles is there in both orders."""
    pairs = watched.select("title", F.explode("before").alias("other"))
    both = pairs.union(pairs.select(F.col("other"), F.col("title")))
    return both.groupBy("title", "other").agg(F.count("*").alias("viewers"))


@app.serve(to=ms.SQLite("media.db", key="title"), mode="complete")
def also_watched(together: DataFrame) -> DataFrame:
    """The titles most often watched with a title, the most frequent first."""
    return _in_one_row(ms.top_k(together, by="viewers", k=SHOWN, per="title"), "title")


@app.serve(to=ms.SQLite("media.db", key="viewer"), mode="complete")
def for_you(watched: DataFrame, together: DataFrame) -> DataFrame:
    """Titles that go with those a viewer has watched, without these; the likeliest first."""
    seen = watched.select("viewer", "title")
    candidates = seen.join(together, "title").groupBy("viewer", "other")
    scored = candidates.agg(F.sum("viewers").alias("viewers"))
    known = seen.withColumnRenamed("title", "other")
    new = scored.join(known, ["viewer", "other"], "left_anti")
    return _in_one_row(ms.top_k(new, by="viewers", k=SHOWN, per="viewer"), "viewer")


def _in_one_row(ranked: DataFrame, key: str) -> DataFrame:
    titles = F.sort_array(F.collect_list(F.struct("rank", "other"))).other
    return ranked.groupBy(key).agg(titles.alias("titles"))
