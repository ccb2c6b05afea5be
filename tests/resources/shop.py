"""A small app over a folder of JSON lines, run by crash tests."""

import os

from pyspark.sql import DataFrame, functions as F

import millstream as ms

app = ms.App("shop")


@app.source(event_time="at", watermark="1 minute")
def orders() -> ms.Files:
    folder = os.environ.get("SHOP_ORDERS", "orders")
    return ms.Files(
        folder,
        schema="id BIGINT, item STRING, at TIMESTAMP, price DOUBLE",
        options={"maxFilesPerTrigger": 5},
    )


@app.table(expect={"price is positive": "price > 0"})
def paid(orders: DataFrame) -> DataFrame:
    return ms.dedup(orders, ["id", "at"])


@app.table(mode="update", key=["item", "window"])
def per_minute(paid: DataFrame) -> DataFrame:
    return paid.groupBy("item", F.window("at", "1 minute")).agg(
        F.count("*").alias("orders"), F.sum("price").alias("revenue")
    )


app.sql(
    "best",
    "SELECT item, sum(orders) AS orders FROM per_minute GROUP BY item",
    mode="complete",
)
