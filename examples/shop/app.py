"""A shop: orders, sales per minute, and the best-selling items.

orders      every order, with a verdict: ok, late, future, malformed or rejected
paid        orders with a price, in whole cents; a view, not stored
sales       sales per item and minute, kept up to date
best_items  total sales per item, recomputed whenever sales change
"""

import random

from pyspark.sql import DataFrame, functions as F

import millstream as ms

ITEMS = ("apple", "bread", "cheese", "honey", "tea")

app = ms.App("shop")


def order(dice: random.Random, number: int) -> dict[str, object]:
    """Generate an order; one in fifty has a price of zero."""
    item = dice.choice(ITEMS)
    price = 0.0 if dice.random() < 0.02 else round(dice.uniform(1, 20), 2)
    return {"id": number, "item": item, "price": price, "quantity": dice.randint(1, 5)}


@app.source(event_time="at", watermark="1 minute")
def orders() -> ms.Generator:
    """Generated orders; replace it by ms.Kafka(…) or ms.Files(…)."""
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
    """Orders with a price, and their amount in cents."""
    cents = F.round(F.col("price") * F.col("quantity") * 100).cast("bigint")
    return orders.where("price > 0").withColumn("cents", cents)


@app.table(mode="update", key=["item", "window"])
def sales(paid: DataFrame) -> DataFrame:
    """Sales per item and minute."""
    return paid.groupBy("item", F.window("at", "1 minute")).agg(
        F.count("*").alias("orders"), F.sum("cents").alias("cents")
    )


app.sql(
    "best_items",
    "SELECT item, sum(orders) AS orders, sum(cents) AS cents FROM sales GROUP BY item",
    mode="complete",
)
