"""Every named crash point of three applications, one after another on one home each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, functions as F

import millstream as ms
from millstream.crash import OF_STORES, POINTS
from millstream.errors import CrashNotReachedError
from millstream.loading import load
from millstream.plan import plan
from millstream.testing.course import CourseStep
from millstream.testing.evidence import invented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.testing import Script

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
AT_A_TIME = 3


def sessions() -> ms.App:
    """A landed source, an append table of windows, a view, rules that drop, a complete table."""
    app = ms.App("sessions")

    @app.source(event_time="at", watermark="20 seconds")
    def hits() -> ms.Memory:
        return ms.Memory("user STRING, at TIMESTAMP, bytes BIGINT")

    @app.view
    def large(hits: DataFrame) -> DataFrame:
        return hits.where("bytes > 5")

    @app.table(expect={"user is known": "user != 'user-1'"}, on_violation="drop")
    def windows(large: DataFrame) -> DataFrame:
        window = F.window("at", "10 seconds")
        return large.groupBy("user", window).agg(F.sum("bytes").alias("bytes"))

    app.sql("users", "SELECT user, count(*) AS n FROM hits GROUP BY user", mode="complete")
    return app


def visits() -> ms.App:
    """A landed source and a table kept up to date by key."""
    app = ms.App("visits")
    app.source(name="clicks", event_time="at", watermark="1 minute")(
        lambda: ms.Memory("user STRING, at TIMESTAMP")
    )
    app.table(name="counts", mode="update", key=["user"])(
        lambda clicks: clicks.groupBy("user").count()
    )
    return app


def points(app: ms.App, queries: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    yield "home_taken", None
    for query in (q.name for q in plan(app.graph) if not queries or q.name in queries):
        never = ("home_taken", *OF_STORES)
        yield from ((point, query) for point in POINTS if point not in never)


def feed(app: ms.App, script: Script) -> Iterator[int]:
    """Send a few new records to every source, again and again; give how many each has had."""
    arrivals = invented(app.graph, 150, seed=1)
    for first in range(0, 150, AT_A_TIME):
        for source in app.graph.sources:
            mine = [arrival for arrival in arrivals if arrival.source == source.name]
            CourseStep(tuple(mine[first : first + AT_A_TIME])).send(script)
        yield first + AT_A_TIME


def etl() -> ms.App:
    return load(str(EXAMPLES / "etl" / "app.py"))


@pytest.mark.parametrize(
    ("make", "queries", "expected"),
    [(etl, ("silver", "gold"), 13), (sessions, (), 16), (visits, (), 12)],
    ids=["etl", "sessions", "visits"],
)
def test_nothing_is_lost_twice_torn_or_wrong_at_any_crash_point(
    stream: Callable[..., Script],
    make: Callable[[], ms.App],
    queries: Sequence[str],
    expected: int,
) -> None:
    app, hit, sent = make(), [], 0
    with stream(app) as s:
        for (point, query), count in zip(points(app, queries), feed(app, s), strict=False):
            sent = count
            try:
                s.crash(after=point, query=query)
            except CrashNotReachedError:
                continue
            hit.append((point, query))
            s.restart()
        # What was lost or repeated anywhere on the way is still seen here.
        s.drain()
        s.assert_consistent()
        landed = {
            source.name: sum(s.verdicts(source.name).values()) for source in app.graph.sources
        }

    assert landed == dict.fromkeys(landed, sent)
    assert len(hit) >= expected, hit
