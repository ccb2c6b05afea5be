"""A web server's access log: requests, errors, busiest and slowest pages, minute by minute.

The same app in SQL alone is in the folder sql; its tables are equal, row by row.

log         every line as it came, with a verdict: ok, late, future, malformed or rejected
per_minute  requests and errors per minute, kept up to date
by_page     requests and the slowest of them per minute and page, kept up to date
top_pages   the three pages most asked for in each minute, recomputed whenever by_page changes
slowest     the three pages with the slowest requests in each minute, likewise
"""

from pyspark.sql import Column, DataFrame, Window, functions as F

import millstream as ms

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
    """What was asked for, without the parameters, and whether it was had."""
    page, is_error = F.split_part("url", F.lit("?"), F.lit(1)), F.col("status") >= 400
    return log.select("at", page.alias("page"), is_error.alias("is_error"), "seconds")


@app.table(mode="update", key=["minute"])
def per_minute(requests: DataFrame) -> DataFrame:
    """How much was asked for, and how often in vain."""
    return requests.groupBy(minute()).agg(
        F.count("*").alias("requests"), F.count_if("is_error").alias("errors")
    )


@app.table(mode="update", key=["minute", "page"])
def by_page(requests: DataFrame) -> DataFrame:
    """The same by page, with the longest time one had to wait."""
    return requests.groupBy(minute(), "page").agg(
        F.count("*").alias("requests"), F.max("seconds").alias("seconds")
    )


@app.table(mode="complete")
def top_pages(by_page: DataFrame) -> DataFrame:
    """The three pages most asked for; of equals, the first by name."""
    return first_three(by_page, F.desc("requests")).select("minute", "place", "page", "requests")


@app.table(mode="complete")
def slowest(by_page: DataFrame) -> DataFrame:
    """The three pages one had to wait for longest."""
    return first_three(by_page, F.desc("seconds")).select("minute", "place", "page", "seconds")


def minute() -> Column:
    """The minute a row belongs to."""
    return F.window("at", "1 minute").start.alias("minute")


def first_three(rows: DataFrame, order: Column) -> DataFrame:
    """Rank the pages of each minute, and keep the first three."""
    ranked = Window.partitionBy("minute").orderBy(order, "page")
    return rows.withColumn("place", F.row_number().over(ranked)).where("place <= 3")
