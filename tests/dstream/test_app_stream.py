"""Functional streams of an App: batches of event time, exactly once, as a batch computes them."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from operator import add, sub
from typing import TYPE_CHECKING, Any

import pytest

import millstream as ms
from millstream.testing.script import NOON
from millstream.trial.rehearse import rehearse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from millstream.dstream import DStream
    from millstream.errors import MillstreamError
    from millstream.testing import Script

POINTS = ("batch_planned", "batch_staged", "sink_commit")
SECONDS = (1, 14)
"""When the posts of a round come: the later one completes the interval of the others."""

app = ms.App("posts")


@app.source(event_time="at", watermark="5 seconds")
def posts() -> ms.Memory:
    return ms.Memory("user STRING, text STRING, at TIMESTAMP")


@app.table()
def spoken(posts: DataFrame) -> DataFrame:
    return posts.where("text <> ''")


@app.stream(schema="at TIMESTAMP, tag STRING, n BIGINT", interval="5 seconds")
def trending(spoken: DStream[Any]) -> DStream[Any]:
    tags = spoken.flatMap(lambda row: row.text.split()).map(lambda tag: (tag, 1))
    counts = tags.reduceByKeyAndWindow(add, sub, 25, 5, filterFunc=lambda kv: kv[1] > 0)
    return counts.transform(lambda time, rdd: rdd.map(lambda kv: (time, *kv)))


@app.stream(schema="user STRING, texts BIGINT", interval="5 seconds", mode="update", key="user")
def totals(posts: DStream[Any]) -> DStream[Any]:
    ones = posts.map(lambda row: (row.user, 1))
    return ones.updateStateByKey(lambda new, total: sum(new) + (total or 0))


@app.table(mode="complete")
def talkative(totals: DataFrame) -> DataFrame:
    return totals.where("texts > 1").select("user")


def say(s: Script, *said: tuple[str, str, str]) -> None:
    for at, user, text in said:
        s.send("posts", user=user, text=text, at=at)


def test_batches_are_intervals_of_event_time_that_are_complete(
    stream: Callable[..., Script],
) -> None:
    with stream(app) as s:
        # In any order: a row that is not late is in the batch of its time.
        say(s, ("12:00:06", "ann", "#a"), ("12:00:01", "bob", "#b #a"), ("12:00:05", "ann", "#b"))
        s.batch()
        assert not s.table("trending").rows("tag")

        # A row of 12:00:05 can still come, as long as the watermark is not beyond it.
        say(s, ("12:00:10", "ann", "#c"))
        s.batch()
        assert not s.table("trending").rows("tag")

        say(s, ("12:00:11", "eve", "#c"))
        s.batch()
        counts = [(row.at.second, row.tag, row.n) for row in s.table("trending").rows()]
        assert sorted(counts) == [(5, "#a", 1), (5, "#b", 2)]
        say(s, ("12:00:16", "eve", "#c"))
        s.batch()
        counts = [(row.at.second, row.tag, row.n) for row in s.table("trending").rows()]
        assert sorted(counts)[2:] == [(10, "#a", 2), (10, "#b", 2), (10, "#c", 1)]
        s.assert_consistent()
        s.assert_frontiers()


@pytest.mark.slow
@pytest.mark.parametrize(
    "deaths",
    [
        [("batch_staged", "totals"), ("sink_commit", "trending")],
        pytest.param([*product(POINTS, ("trending", "totals"))], marks=pytest.mark.long),
    ],
    ids=["twice", "at every point"],
)
def test_what_a_stream_has_is_what_a_batch_computes_wherever_the_driver_dies(
    deaths: list[tuple[str, str]], stream: Callable[..., Script]
) -> None:
    with stream(app) as s:
        for number, (point, query) in enumerate(deaths):
            began, later = (NOON + timedelta(seconds=n) for n in SECONDS)
            at, then = (f"{t + number * timedelta(seconds=15):%H:%M:%S}" for t in (began, later))
            say(s, (at, "ann", "#a"), (at, "bob", "#b"), (at, "ann", f"#{number}"))
            s.batch()
            say(s, (then, "eve", "#e"))
            s.crash(after=point, query=query)
            s.restart()
            s.drain()

        s.assert_consistent()
        assert s.table("totals").rows("user", "texts")
        assert s.table("talkative").rows("user")


def test_a_restored_table_gets_its_batches_again(stream: Callable[..., Script], home: Any) -> None:
    import shutil

    with stream(app, home=home) as s:
        say(s, ("12:00:01", "ann", "#a"), ("12:00:20", "bob", "#b"))
        s.batch()
        before = s.table("trending").rows()
    assert before
    # The state of the program is lost: all batches run again, and none is written twice.
    shutil.rmtree(home / "programs")
    with stream(app, home=home) as s:
        say(s, ("12:00:30", "ann", "#a"))
        s.batch()
        s.assert_consistent()
        assert len(s.table("trending").rows()) > len(before)


def untimed() -> ms.App:
    wrong = ms.App("wrong")

    @wrong.source
    def posts() -> ms.Memory:
        return ms.Memory("text STRING")

    @wrong.stream(schema="n BIGINT")
    def counts(posts: DStream[Any]) -> DStream[Any]:
        return posts.count().map(lambda n: (n,))

    return wrong


def with_output(posts: DStream[Any]) -> DStream[Any]:
    posts.foreachRDD(lambda rdd: None)
    return posts


def with_input(posts: DStream[Any]) -> DStream[Any]:
    return posts.union(posts.context().queueStream([]))


def wrong_app(**options: Any) -> ms.App:
    wrong = ms.App("wrong")

    @wrong.source(event_time="at", watermark="1 minute")
    def posts() -> ms.Memory:
        return ms.Memory("text STRING, at TIMESTAMP")

    @wrong.table(mode="update", key="text")
    def seen(posts: DataFrame) -> DataFrame:
        return posts.groupBy("text").count()

    reads = options.pop("reads", "posts")

    def of_posts(posts: Any) -> Any:
        return options.get("returns")

    def of_seen(seen: Any) -> Any:
        return seen

    chosen = options.get("program") or (of_posts if reads == "posts" else of_seen)
    settings = {"schema": "n BIGINT", "interval": options.get("interval", "1 second")}
    settings |= {"schema": options.get("schema", "n BIGINT"), "name": "counts"}
    wrong.stream(**settings)(chosen)
    return wrong


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (untimed, "STREAM_TIME"),
        (wrong_app, "NOT_A_DSTREAM"),
        (lambda: wrong_app(reads="seen"), "CHANGING_INPUT"),
        (lambda: wrong_app(schema="n WHAT"), "SCHEMA"),
        (lambda: wrong_app(interval="soon"), "DURATION_REFUSED"),
        (lambda: wrong_app(interval="0 seconds"), "DSTREAM_ARGUMENT"),
        (lambda: wrong_app(program=with_output), "DSTREAM_ARGUMENT"),
        (lambda: wrong_app(program=with_input), "DSTREAM_ARGUMENT"),
    ],
)
def test_what_is_wrong_with_a_stream_is_found_by_check(
    wrong: Callable[[], ms.App], code: str, spark: SparkSession
) -> None:
    made = wrong()

    found: tuple[MillstreamError, ...] = made.faults or rehearse(made.graph, spark)

    assert [fault.code for fault in found if not fault.is_warning] == [code]
