"""Page visits, kept current where a web site can read them in a millisecond.

views      every page view, with a verdict
by_page    how often each page was viewed, and when last: one row per page, updated in place
last_seen  the page each visitor viewed last; an earlier view that arrives later does not replace it

Both are tables of `visits.db`, a SQLite file that any program can read while the app runs. A
reader never sees part of a batch. `app.get("by_page", page="/tea")` looks one row up.
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

PAGES = ("/", "/tea", "/mugs", "/about")
VISITORS = 2_000

app = ms.App("serving")


def view(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a page view; half of them are of the first page."""
    page = PAGES[0] if dice.random() < 0.5 else dice.choice(PAGES[1:])
    return {"view": number, "visitor": f"visitor-{dice.randrange(VISITORS):04d}", "page": page}


@app.source(event_time="at", watermark="1 minute")
def views() -> ms.Generator:
    """Page views, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="view BIGINT NOT NULL, visitor STRING NOT NULL, page STRING NOT NULL, at TIMESTAMP",
        make=view,
        event_time="at",
        rate=200,
        seed=11,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@app.view
def distinct(views: DataFrame) -> DataFrame:
    """Each view once."""
    return ms.dedup(views, ["view", "at"])


@app.serve(to=ms.SQLite("visits.db", key="page"), mode="update")
def by_page(views: DataFrame) -> DataFrame:
    """Views by page; Spark keeps one row of state per page."""
    return views.groupBy("page").agg(F.count("*").alias("views"), F.max("at").alias("last"))


@app.serve(to=ms.SQLite("visits.db", key="visitor", newest_by="at"))
def last_seen(distinct: DataFrame) -> DataFrame:
    """The page each visitor viewed last: no aggregation, the newest row is kept."""
    return distinct.select("visitor", "page", "at")
