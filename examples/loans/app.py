"""Loans: approve or refuse each application, with the reason, from what the applicant owes.

ledger     every application and repayment, with a verdict
entries    each of them once, for a positive amount
decisions  each application, approved or refused, with the reason
reasons    how many applications, and how much money, for each reason
answers    each decision, in `loans.db`: `app.get("answers", application=12)`

State: what an applicant owes, and when they applied; an approved loan counts at the next
application. Reference: income and score of each applicant, in applicants.csv; edit it while the app
runs. The first reason of `refusal` that holds is the one that is given.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, functions as F

import millstream as ms

APPLICANTS = Path(__file__).with_name("applicants.csv")
DAY = timedelta(days=1)
LOWEST_SCORE, INCOMES, A_DAY = 500, 0.5, 2
"""Nobody owes more than half a year's income, or applies more than twice a day."""

app = ms.App("loans")


def entry(dice: random.Random, number: int) -> dict[str, object]:
    """Generate an application or a repayment; some applicants are not in the file."""
    applied = dice.random() < 0.4
    return {
        "entry": number,
        "applicant": f"applicant-{dice.randrange(42):02d}",
        "kind": "application" if applied else "repayment",
        "amount": float(dice.randrange(1, 80) * 100) if applied else float(dice.randrange(50, 900)),
    }


@app.source(event_time="at", watermark="5 seconds")
def ledger() -> ms.Generator:
    """Applications and repayments, some of them late, duplicate or malformed."""
    return ms.Generator(
        schema="entry BIGINT NOT NULL, applicant STRING NOT NULL, kind STRING NOT NULL, "
        "amount DOUBLE NOT NULL, at TIMESTAMP",
        make=entry,
        event_time="at",
        rate=100,
        seed=13,
        late=0.01,
        duplicate=0.02,
        malformed=0.01,
    )


@app.table(
    expect={
        "amount is positive": "amount > 0",
        "kind is known": "kind IN ('application', 'repayment')",
    }
)
def entries(ledger: DataFrame) -> DataFrame:
    """Each entry once, however often it was sent."""
    return ms.dedup(ledger, ["entry", "at"])


def refusal(row: Any, owed: float, today: int) -> str | None:
    """Return why an application is refused, or None."""
    if row.income is None:
        return "applicant is not known"
    if row.score < LOWEST_SCORE:
        return f"score is under {LOWEST_SCORE}"
    if today >= A_DAY:
        return f"applied more than {A_DAY} times in a day"
    if owed + row.amount > INCOMES * row.income:
        return f"would owe more than {INCOMES:.0%} of the income"
    return None


@ms.stateful(
    key="applicant",
    state="owed DOUBLE, applied ARRAY<TIMESTAMP>",
    emits="application BIGINT, applicant STRING, at TIMESTAMP, amount DOUBLE, owed DOUBLE, "
    "decision STRING, reason STRING",
    ttl="3650 days",
)
def decide(
    applicant: str, rows: Sequence[Any], state: Any, timer: ms.Timer
) -> Iterator[dict[str, object]]:
    """Decide on each application; `owed` is what the applicant owed before it."""
    for row in rows:
        owed = state.owed or 0.0
        if row.kind == "repayment":
            state.owed = max(0.0, owed - row.amount)
            continue
        state.applied = [at for at in state.applied if at > timer.now - DAY]
        reason = refusal(row, owed, len(state.applied))
        yield {
            "application": row.entry,
            "applicant": applicant,
            "at": row.at,
            "amount": row.amount,
            "owed": owed,
            "decision": "refused" if reason else "approved",
            "reason": reason or "within the limit",
        }
        state.applied = [*state.applied, row.at]
        state.owed = owed if reason else owed + row.amount


@app.table
def decisions(entries: DataFrame) -> DataFrame:
    """Approved or refused, and why."""
    schema = "applicant STRING, income DOUBLE, score INT"
    known = ms.reference(str(APPLICANTS), format="csv", schema=schema)
    return decide(entries.join(known, "applicant", "left"))


@app.table(mode="update", key=["decision", "reason"])
def reasons(decisions: DataFrame) -> DataFrame:
    """Applications and money, by reason."""
    counts = (F.count("*").alias("applications"), F.sum("amount").alias("amount"))
    return decisions.groupBy("decision", "reason").agg(*counts)


@app.serve(to=ms.SQLite("loans.db", key="application"))
def answers(decisions: DataFrame) -> DataFrame:
    """The answer to an applicant."""
    return decisions.select("application", "applicant", "decision", "reason")
