"""A shop: orders as they come in, what is sold per minute, and what sells best.

orders      every order as it came, with a verdict: ok, late, future, malformed or rejected
paid        the orders that are worth something, in whole cents; a view, stored nowhere
sales       what is sold per item and minute, kept up to date
best_items  the items that bring in most, recomputed whenever sales change
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

ITEMS = ("apple", "bread", "cheese", "honey", "tea")

app = ms.App("shop")


def order(dice: random.Random, number: int) -> dict[str, object]:
    """Make up an order; one in fifty has a price of nothing."""
    item = dice.choice(ITEMS)
    price = 0.0 if dice.random() < 0.02 else round(dice.uniform(1, 20), 2)
    return {"id": number, "item": item, "price": price, "quantity": dice.randint(1, 5)}


@app.source(event_time="at", watermark="1 minute")
def orders() -> ms.Generator:
    """Orders, made up here; put ms.Kafka(…) or ms.Files(…) in its place."""
    return ms.Generator(
        "id BIGINT NOT NULL, item STRING, price DOUBLE, quantity INT, at TIMESTAMP",
        make=order,
        event_time="at",
        rate=100,
        late=0.01,
        malformed=0.005,
    )


@app.view
def paid(orders: DataFrame) -> DataFrame:
    """Orders with what they bring in."""
    cents = F.round(F.col("price") * F.col("quantity") * 100).cast("bigint")
    return orders.where("price > 0").withColumn("cents", cents)


@app.table(mode="update", key=["item", "window"])
def sales(paid: DataFrame) -> DataFrame:
    """What is sold per item and minute."""
    return paid.groupBy("item", F.window("at", "1 minute")).agg(
        F.count("*").alias("orders"), F.sum("cents").alias("cents")
    )


app.sql(
    "best_items",
    "SELECT item, sum(orders) AS orders, sum(cents) AS cents FROM sales GROUP BY item",
    mode="complete",
)
