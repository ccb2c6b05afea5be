"""Billing: from usage to one invoice per customer and month, exact to the cent.

usage     every event, with a verdict; a late event is stored for a correction
charges   each event once, with its cost; events without price or quantity are in quarantine
invoices  what each customer owes for each month, kept up to date
revenue   what all customers owe for each month, recomputed whenever an invoice changes
"""

import random
from decimal import Decimal

from pyspark.sql import Column, DataFrame, functions as F

import millstream as ms

PRICES = {
    "compute hour": Decimal("0.0425"),
    "gigabyte month": Decimal("0.0190"),
    "thousand calls": Decimal("0.3000"),
}
"""The price of a unit; a sum of charges is exact, and rounded once: on the invoice."""

app = ms.App("billing")


def event(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a usage event; one in a hundred has no price, one has a quantity of zero."""
    fate = dice.randrange(100)
    return {
        "id": number,
        "customer": f"customer-{dice.randrange(50):02d}",
        "product": "prototype" if fate == 0 else dice.choice(list(PRICES)),
        "quantity": "0" if fate == 1 else str(dice.randrange(1, 50_000) / Decimal(1000)),
    }


@app.source(event_time="at", watermark="1 minute")
def usage() -> ms.Generator:
    """Usage events of the meters, some of them duplicate, late or malformed."""
    return ms.Generator(
        schema="id BIGINT NOT NULL, customer STRING NOT NULL, product STRING NOT NULL, "
        "quantity DECIMAL(12,3) NOT NULL, at TIMESTAMP",
        make=event,
        event_time="at",
        rate=200,
        seed=7,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@app.table(
    expect={"product has a price": "amount IS NOT NULL", "something was used": "quantity > 0"}
)
def charges(usage: DataFrame) -> DataFrame:
    """Each event once, with its month and its cost."""
    return ms.dedup(usage, ["id", "at"]).select(
        "id",
        "customer",
        "at",
        F.date_format("at", "yyyy-MM").alias("month"),
        "product",
        "quantity",
        (F.col("quantity") * price()).alias("amount"),
    )


@app.table(
    mode="update", key=["customer", "month"], expect={"there is something to pay": "total >= 0"}
)
def invoices(charges: DataFrame) -> DataFrame:
    """What a customer owes for a month, rounded half up to cents."""
    total = F.round(F.sum("amount"), 2).cast("DECIMAL(18,2)")
    return charges.groupBy("customer", "month").agg(
        F.count("*").alias("events"), total.alias("total")
    )


app.sql(
    "revenue",
    """
    SELECT month, count(*) AS invoices, CAST(sum(total) AS DECIMAL(20,2)) AS total
    FROM invoices GROUP BY month
    """,
    mode="complete",
)


def price() -> Column:
    """Return the price of a unit of the product; null if it has none."""
    known = F.lit(None).cast("DECIMAL(10,4)")
    for product, amount in PRICES.items():
        known = F.when(F.col("product") == product, F.lit(amount)).otherwise(known)
    return known.cast("DECIMAL(10,4)")
