"""A web server's access log: requests, errors, busiest and slowest pages, minute by minute.

The same app in SQL alone is in the folder sql; its tables are equal, row by row.

log         every line, with a verdict: ok, late, future, malformed or rejected
per_minute  requests and errors per minute, kept up to date
by_page     requests and the slowest request per minute and page, kept up to date
top_pages   the three most requested pages of each minute, recomputed whenever by_page changes
slowest     the three pages with the slowest requests of each minute, likewise
visitors    distinct addresses, quantiles of durations and the most frequent pages per minute
per_day     the same per day, merged from the minutes
"""

from pyspark.sql import Column, DataFrame, Window, functions as F

import millstream as ms

VISITORS = ms.sketch.Distinct(error=0.05)
DURATION = ms.sketch.Quantiles(error=0.02, at=(0.5, 0.95, 0.99))
PAGES = ms.sketch.HeavyHitters(k=3, error=0.001)

app = ms.App("weblog")


@app.source(
    event_time="at",
    watermark="2 minutes",
    expect={
        "status is one of HTTP": "status BETWEEN 100 AND 599",
        "time is not negative": "seconds >= 0",
    },
)
def log() -> ms.Files:
    """Lines such as `2016-12-06T08:58:35.318+0000 37.139.9.11 404 GET /codemove/TTC 0.026`."""
    return ms.Files(
        "build/weblog",
        format="csv",
        csv=ms.CsvOptions(sep=" "),
        schema="at TIMESTAMP NOT NULL, ip STRING NOT NULL, status INT NOT NULL, "
        "method STRING NOT NULL, url STRING NOT NULL, seconds DOUBLE NOT NULL",
        options={"maxFilesPerTrigger": 1},
    )


@app.view
def requests(log: DataFrame) -> DataFrame:
    """The requested page, without parameters, and whether the request failed."""
    page, is_error = F.split_part("url", F.lit("?"), F.lit(1)), F.col("status") >= 400
    return log.select("at", "ip", page.alias("page"), is_error.alias("is_error"), "seconds")


@app.table(mode="update", key=["minute"])
def per_minute(requests: DataFrame) -> DataFrame:
    """Requests and errors per minute."""
    return requests.groupBy(minute()).agg(
        F.count("*").alias("requests"), F.count_if("is_error").alias("errors")
    )


@app.table(mode="update", key=["minute", "page"])
def by_page(requests: DataFrame) -> DataFrame:
    """Requests per minute and page, with the longest duration."""
    return requests.groupBy(minute(), "page").agg(
        F.count("*").alias("requests"), F.max("seconds").alias("seconds")
    )


@app.table(mode="complete")
def top_pages(by_page: DataFrame) -> DataFrame:
    """The three most requested pages; of equals, the first by name."""
    return first_three(by_page, F.desc("requests")).select("minute", "place", "page", "requests")


@app.table(mode="complete")
def slowest(by_page: DataFrame) -> DataFrame:
    """The three pages with the slowest requests."""
    return first_three(by_page, F.desc("seconds")).select("minute", "place", "page", "seconds")


@app.table(mode="update", key=["minute"])
def visitors(requests: DataFrame) -> DataFrame:
    """How many different addresses, how slow and which pages: approximately, with bounds."""
    return requests.groupBy(minute()).agg(
        VISITORS.of("ip").alias("visitors"),
        DURATION.of("seconds").alias("duration"),
        PAGES.of("page").alias("pages"),
    )


@app.table(mode="complete")
def per_day(visitors: DataFrame) -> DataFrame:
    """The same per day: an address that comes in two minutes counts once."""
    return visitors.groupBy(F.to_date("minute").alias("day")).agg(
        VISITORS.merged("visitors").alias("visitors"),
        DURATION.merged("duration").alias("duration"),
        PAGES.merged("pages").alias("pages"),
    )


def minute() -> Column:
    """Return the minute of a row."""
    return F.window("at", "1 minute").start.alias("minute")


def first_three(rows: DataFrame, order: Column) -> DataFrame:
    """Rank the pages of each minute, and keep the first three."""
    ranked = Window.partitionBy("minute").orderBy(order, "page")
    return rows.withColumn("place", F.row_number().over(ranked)).where("place <= 3")
