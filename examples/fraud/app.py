"""Fraud: approve or deny each payment, from what the customer has done in the last hour.

Beside the rules, a model learns from all customers which payments were reported as fraud.

payments   every payment, with a verdict
reports    payments that a customer reported as fraud, with a verdict
clean      each payment once
decisions  each payment, approved or denied, with the rules against it
customers  for each customer, the number of payments and denials, and the last denied payment
probed     cards with small payments before a large one
fraud      the model: each payment as it was scored before its report was learnt, and the versions
found      how much fraud the rules found, and how much the model, by minute

State: the recent payments of a customer, kept by a function of one customer. Reference: home and
limit of each customer, in customers.csv; edit it while the app runs. Rules: conditions in SQL on
both.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, functions as F

import millstream as ms

CUSTOMERS = Path(__file__).with_name("customers.csv")
RATE = 200
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)

RULES = {
    "unknown customer": "hourly_limit IS NULL",
    "over the limit of an hour": "spent + amount > hourly_limit",
    "five in a minute": "in_a_minute >= 4",
    "two countries at once": "country != last_country AND at < last_at + INTERVAL 30 MINUTES",
    "much of the limit, abroad": "country != home AND amount > hourly_limit / 4",
}
"""A payment is denied if any of them is true."""

app = ms.App("fraud")

probing = (
    ms.pattern(key="customer", within="10 minutes")
    .step("small", "amount < 1")
    .step("probe", "amount < 5", times=(1, 3))
    .without("reset", "confirmed")
    .step("big", "amount > 500 AND country != small.country")
)


def stolen(number: int) -> int:
    """Return which of twenty payments is that of a stolen card."""
    return number * 20 + random.Random(number).randrange(20)


def payment(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a payment: most are small and at home, some cards are stolen."""
    customer, is_stolen = dice.randrange(40), stolen(number // 20) == number
    amount = dice.choice((0.5, 0.9, 3.0, 800.0)) if is_stolen else dice.lognormvariate(2.5, 1)
    return {
        "payment": number,
        "customer": f"customer-{customer:02d}",
        "amount": round(amount, 2),
        "country": dice.choice(("BR", "CN", "US")) if is_stolen else "DE",
        "confirmed": not is_stolen and dice.random() < 0.1,
    }


@app.source(event_time="at", watermark="5 seconds")
def payments() -> ms.Generator:
    """Payments, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="payment BIGINT NOT NULL, customer STRING NOT NULL, at TIMESTAMP, "
        "amount DOUBLE NOT NULL, country STRING NOT NULL, confirmed BOOLEAN",
        make=payment,
        event_time="at",
        rate=RATE,
        seed=5,
        late=0.01,
        duplicate=0.01,
        malformed=0.01,
    )


def report(dice: random.Random, number: int) -> dict[str, object]:  # noqa: ARG001
    """Generate a report: the customer sees ten seconds later that the card is stolen."""
    return {"payment": stolen(number - 10 * RATE // 20)}


@app.source(event_time="at", watermark="5 seconds")
def reports() -> ms.Generator:
    """Payments that were reported as fraud."""
    return ms.Generator(
        schema="payment BIGINT NOT NULL, at TIMESTAMP",
        make=report,
        event_time="at",
        rate=RATE // 20,
        seed=6,
    )


@ms.stateful(
    key="customer",
    state="recent ARRAY<STRUCT<at TIMESTAMP, amount DOUBLE, country STRING>>",
    emits="payment BIGINT, customer STRING, at TIMESTAMP, amount DOUBLE, country STRING, "
    "spent DOUBLE, in_a_minute INT, last_at TIMESTAMP, last_country STRING",
    ttl="1 hour",
)
def history(
    customer: str, rows: Sequence[Any], state: Any, timer: ms.Timer
) -> Iterator[dict[str, object]]:
    """Return each payment with a summary of the hour before it."""
    recent = [(p.at, p.amount, p.country) for p in state.recent if p.at > timer.now - HOUR]
    for row in rows:
        last_at, _, last_country = recent[-1] if recent else (None, None, None)
        yield {
            "payment": row.payment,
            "customer": customer,
            "at": row.at,
            "amount": row.amount,
            "country": row.country,
            "spent": sum(amount for _, amount, _ in recent),
            "in_a_minute": sum(at > timer.now - MINUTE for at, _, _ in recent),
            "last_at": last_at,
            "last_country": last_country,
        }
        recent.append((row.at, row.amount, row.country))
    state.recent = [{"at": at, "amount": paid, "country": where} for at, paid, where in recent]


def against() -> Column:
    """Return the names of the rules against a payment."""
    reported = [F.when(F.expr(rule), F.lit(name)) for name, rule in RULES.items()]
    return F.array_compact(F.array(*reported))


@app.table
def clean(payments: DataFrame) -> DataFrame:
    """Each payment once, however often it was sent."""
    return ms.dedup(payments, "payment")


@app.table
def decisions(clean: DataFrame) -> DataFrame:
    """Approved or denied, and why."""
    schema = "customer STRING, home STRING, hourly_limit DOUBLE"
    known = ms.reference(str(CUSTOMERS), format="csv", schema=schema)
    judged = history(clean).join(known, "customer", "left").withColumn("against", against())
    is_approved = F.size("against") == 0
    is_abroad = F.coalesce(F.col("country") != F.col("home"), F.lit(True)).alias("abroad")
    return judged.select(
        *("payment", "customer", "at", "amount", "country", "spent", "in_a_minute", "against"),
        is_abroad,
        F.when(is_approved, "approved").otherwise("denied").alias("decision"),
    )


@app.table(mode="update", key=["customer"])
def customers(decisions: DataFrame) -> DataFrame:
    """The decisions for each customer; there are few customers, so the state stays small."""
    is_denied = F.col("decision") == "denied"
    return decisions.groupBy("customer").agg(
        F.count("*").alias("payments"),
        F.count_if(is_denied).alias("denied"),
        F.max_by("payment", F.when(is_denied, F.struct("at", "payment"))).alias("last_denied"),
    )


@app.table
def probed(clean: DataFrame) -> DataFrame:
    """Matches that are final; `millstream backtest probed app.py` tries the pattern on history."""
    return ms.match(clean, probing, select="customer, small.at AS began, big.amount, ended")


@app.view
def labelled(decisions: DataFrame, reports: DataFrame) -> DataFrame:
    """Each payment, and whether it is reported as fraud within half a minute."""
    known = ms.join_within(decisions, reports, on="payment", within="30 seconds", how="left")
    return known.select(
        *("payment", "at", "abroad", "in_a_minute"),
        F.log1p("amount").alias("size"),
        (F.col("decision") == "denied").alias("denied"),
        F.col("at_right").isNotNull().alias("reported"),
    )


@app.model(
    learner=ms.learn.LogisticRegression(half_life="1 hour"),
    label="reported",
    features=["abroad", "size", "in_a_minute"],
    every="10 seconds",
)
def fraud(labelled: DataFrame) -> DataFrame:
    """Learn from all customers which payments are fraud."""
    return labelled


@app.table(mode="update", key=["minute"])
def found(fraud: DataFrame) -> DataFrame:
    """How much fraud the rules and the model found, on payments that it had not learnt."""
    known = fraud.where("prediction IS NOT NULL")
    return known.groupBy(F.window("at", "1 minute").alias("minute")).agg(
        F.count("*").alias("payments"),
        F.count_if("reported").alias("frauds"),
        F.count_if(F.expr("reported AND denied")).alias("by_rules"),
        F.count_if(F.expr("reported AND prediction")).alias("by_model"),
        F.count_if(F.expr("NOT reported AND denied")).alias("rules_wrong"),
        F.count_if(F.expr("NOT reported AND prediction")).alias("model_wrong"),
    )
