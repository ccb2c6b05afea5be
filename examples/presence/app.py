"""The status of each user: online, active, inactive or offline, by event times of their clicks.

clicks   every click, with a verdict
changes  each change of a user's status, when it is final
latest   the current status of each user
crowd    how many users have each status

A function of one user keeps the status. It is called with the clicks of the user in event-time
order, in whatever order they arrive, and when a timer of the user fires.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, functions as F

import millstream as ms

USERS = 2_000
ACTIVE_AFTER = 3
QUIET = timedelta(seconds=10)

app = ms.App("presence")


def click(dice: random.Random, _: int) -> dict[str, object]:
    """Generate a click; a few users make most of them."""
    return {"user": f"user-{int(dice.paretovariate(0.8)) % USERS:04d}", "page": dice.randrange(50)}


@app.source(event_time="at", watermark="5 seconds")
def clicks() -> ms.Generator:
    """Clicks, some of them late or malformed."""
    return ms.Generator(
        schema="user STRING NOT NULL, page BIGINT NOT NULL, at TIMESTAMP",
        make=click,
        event_time="at",
        rate=500,
        seed=3,
        late=0.01,
        malformed=0.01,
    )


@ms.stateful(
    key="user",
    state="status STRING, clicks BIGINT, changes BIGINT",
    emits="user STRING, status STRING, at TIMESTAMP, change BIGINT",
    timeout="event 1 minute",
)
def presence(
    user: str, rows: Sequence[Any], state: Any, timer: ms.Timer
) -> Iterator[tuple[object, ...]]:
    """Return each change of a user's status.

    Online with the first click, active with three that are close together, inactive after ten
    quiet seconds, offline after a minute: then the user is removed from the state.
    """
    before, state.clicks = state.status, (state.clicks or 0) + len(rows)
    if timer.fired == "timeout":
        state.status = "offline"
    elif timer.fired == "quiet":
        state.status, state.clicks = "inactive", 0
    else:
        timer.set("quiet", timer.now + QUIET)
        state.status = "active" if state.clicks >= ACTIVE_AFTER else "online"
    if state.status != before:
        state.changes = (state.changes or 0) + 1
        yield user, state.status, timer.now, state.changes


@app.table
def changes(clicks: DataFrame) -> DataFrame:
    """Each change of a status, with its time."""
    return presence(clicks)


@app.table(mode="update", key=["user"])
def latest(changes: DataFrame) -> DataFrame:
    """The last change of each user."""
    last = F.max_by(F.struct("status", "at"), F.struct("at", "change")).alias("last")
    return changes.groupBy("user").agg(last).select("user", "last.*")


@app.table(mode="complete")
def crowd(latest: DataFrame) -> DataFrame:
    """How many users have each status."""
    return latest.groupBy("status").agg(F.count("*").alias("users"))
