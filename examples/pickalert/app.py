"""Alerts for a warehouse: orders that are not picked in time, and zones that are slow.

events    scans of orders placed and picked, each with a verdict
unpicked  an order that was not picked within 15 minutes: sent at once, under one key
slow      a zone with such orders: sent at most once in each half hour

`unpicked` is also a table, the outbox of the alert, which `slow` reads. An order counts as not
picked when the watermark has passed its time: a scan that arrives before that still counts.
"""

import random
from datetime import timedelta

from pyspark.sql import DataFrame

import millstream as ms

ZONES = ("cold", "dry", "bulk")

app = ms.App("pickalert")

picking = (
    ms.pattern(key="order", within="15 minutes")
    .step("placed", "kind = 'placed'")
    .step("picked", "kind = 'picked'")
)


def event(dice: random.Random, number: int) -> dict[str, object]:
    """Generate a scan; about one order in twenty is never picked."""
    order, kind = divmod(number, 2)
    is_forgotten = kind == 1 and dice.random() < 0.05
    return {
        "order": f"order-{order:06d}",
        "zone": ZONES[order % len(ZONES)],
        "kind": "counted" if is_forgotten else ("placed", "picked")[kind],
    }


@app.source(event_time="at", watermark="1 minute")
def events() -> ms.Generator:
    """Scans, some of them late or malformed."""
    return ms.Generator(
        schema="order STRING NOT NULL, zone STRING NOT NULL, kind STRING NOT NULL, at TIMESTAMP",
        make=event,
        event_time="at",
        rate=50,
        seed=3,
        late=0.01,
        malformed=0.01,
        # Long enough for the first orders to be overdue.
        head_start=timedelta(minutes=20),
    )


@app.alert(to=ms.Log(), key=["order"])
def unpicked(events: DataFrame) -> DataFrame:
    """An order that was placed but not picked in time."""
    return ms.absent(
        events, picking, select="order, placed.zone AS zone, began AS placed_at, until AS due_at"
    )


@app.alert(to=ms.Log("slow.jsonl"), key=["zone"], cooldown="30 minutes", event_time="due_at")
def slow(unpicked: DataFrame) -> DataFrame:
    """A zone where orders are not picked in time, with the first of them."""
    return unpicked.select("zone", "order", "due_at")
