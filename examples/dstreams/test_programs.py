"""Programs in the style of DStreams, batch by batch on a clock that is moved by hand."""

from __future__ import annotations

import sqlite3
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.dstream import Steps, StreamingContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

LOG = '10.0.0.1 - - [18/Nov/2026:12:00:00 +0000] "GET {} HTTP/1.1" {} {}'


def program(name: str) -> Any:
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(spark: SparkSession) -> Callable[..., list[list[Any]]]:
    """Return the function that runs a program on batches of lines, and gives what it gives."""

    def batches_of(
        body: Callable[[Any], Any], batches: Sequence[Sequence[Any]], *, interval: int = 1
    ) -> list[list[Any]]:
        found: list[list[Any]] = []
        ssc = StreamingContext(spark.sparkContext, interval)
        body(ssc.queueStream([*batches])).foreachRDD(lambda rdd: found.append(rdd.collect()))
        with Steps(ssc) as steps:
            steps.run(len(batches))
        return found

    return batches_of


def test_a_stream_and_a_batch_count_words_by_the_same_function(
    run: Callable[..., list[list[Any]]], spark: SparkSession
) -> None:
    count_words = program("wordcount").count_words
    first, second = ["to be or", "not to be"], ["To be"]

    in_stream = run(count_words, [first, second])

    assert [dict(batch) for batch in in_stream] == [
        {"to": 2, "be": 2, "or": 1, "not": 1},
        {"to": 1, "be": 1},
    ]
    in_batch = count_words(spark.sparkContext.parallelize([*first, *second]))
    assert dict(in_batch.collect()) == {"to": 3, "be": 3, "or": 1, "not": 1}


def test_both_kinds_of_state_count_the_same(run: Callable[..., list[list[Any]]]) -> None:
    totals, lines = program("totals"), [["a b", "a"], [], ["b c"]]

    updated = run(totals.updated, lines)
    snapshots = run(lambda stream: totals.mapped(stream).stateSnapshots(), lines)
    mapped = run(totals.mapped, lines)

    assert [dict(batch) for batch in updated] == [
        {"a": 2, "b": 1},
        {"a": 2, "b": 1},
        {"a": 2, "b": 2, "c": 1},
    ]
    assert [dict(batch) for batch in snapshots] == [dict(batch) for batch in updated]
    assert [sorted(batch) for batch in mapped] == [
        [("a", 1), ("a", 2), ("b", 1)],
        [],
        [("b", 2), ("c", 1)],
    ]


def test_hashtags_go_out_of_the_window(run: Callable[..., list[list[Any]]]) -> None:
    trending = program("hashtags").trending
    posts = [["#a #b", "#A no"], ["#b"], ["#c"], [], [], ["#c #c"], [], []]

    found = run(lambda stream: trending(stream, window=6, slide=1, most=2), posts)

    assert found == [
        [("#a", 2), ("#b", 1)],
        [("#a", 2), ("#b", 2)],
        [("#a", 2), ("#b", 2)],
        [("#a", 2), ("#b", 2)],
        [("#a", 2), ("#b", 2)],
        [("#c", 3), ("#a", 2)],
        [("#c", 3), ("#b", 1)],
        [("#c", 3)],
    ]


def test_a_mood_is_given_when_it_changes_and_a_silent_user_is_gone(
    run: Callable[..., list[list[Any]]],
) -> None:
    moods = program("moods").moods
    lines = [["ann a great day", "bob hm"], ["ann fine"], ["ann bad bad", "one"], [], []]

    found = run(lambda stream: moods(stream, idle_s=2), [*lines, ["ann broken broken"]])

    assert [sorted(batch) for batch in found] == [
        [("ann", "happy"), ("bob", "calm")],
        [],
        [("ann", "calm")],
        [("bob", "gone")],
        [],
        [("ann", "sad")],
    ]


def test_statistics_of_a_log_are_stored_once_for_each_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    weblog, store = program("weblog"), tmp_path / "weblog.db"
    batches = [
        [LOG.format("/", 200, 10), LOG.format("/x", 404, "-"), "no request"],
        [LOG.format("/", 200, 5)],
        [],
        [LOG.format("/", 500, 1)],
    ]

    def start(queue: list[list[str]]) -> Any:
        ssc = StreamingContext(spark.sparkContext, 10)
        ssc.checkpoint(str(tmp_path / "checkpoint"))
        lines = ssc.queueStream(queue)
        weblog.statistics(lines, window=20, slide=10).foreachRDD(weblog.into(str(store)))
        return Steps(ssc)

    with start(batches) as steps:
        steps.run(len(batches))

    with sqlite3.connect(store) as opened:
        found = opened.execute(
            "SELECT dense_rank() OVER (ORDER BY at), status, requests, bytes FROM statistics "
            "ORDER BY at, status"
        ).fetchall()
    assert found == [
        (1, "2xx", 1, 10),
        (1, "4xx", 1, 0),
        (2, "2xx", 2, 15),
        (2, "4xx", 1, 0),
        (3, "2xx", 1, 5),
        (4, "5xx", 1, 1),
    ]


def test_orders_are_joined_with_files_that_change(
    run: Callable[..., list[list[Any]]], tmp_path: Path
) -> None:
    orders = program("orders")
    customers, blacklist = tmp_path / "customers.csv", tmp_path / "blacklist.txt"
    customers.write_text("ann,Berlin\nbob,Brno\n")
    blacklist.write_text("eve\n")
    lines = [["ann,tea,2.5", "eve,gold,9", "cid,jam,1"], ["bob,mug,4", "no order"]]

    def body(stream: Any) -> Any:
        allowed = orders.without(orders.by_customer(stream), blacklist)
        allowed.foreachRDD(lambda rdd: blacklist.write_text("eve\nbob\n") and None)
        return orders.with_city(allowed, customers)

    found = run(body, lines)

    assert [sorted(batch) for batch in found] == [
        [("ann", (("tea", 2.5), "Berlin")), ("cid", (("jam", 1.0), None))],
        [],
    ]
