"""Programs with windows, and with state."""

from __future__ import annotations

from operator import add, sub
from typing import TYPE_CHECKING, Any

from tests.dstream.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.dstream.program import Collect, Queue

NUMBERS: Queue = ([1, 2], [3], [], [4, 5, 6], [], [], [], [], [7], [8, 8], [9], [])
PAIRS: Queue = (
    [("a", 1), ("b", 2)], [("a", 3)], [], [("c", 4), ("a", 5), ("c", 6)], [("b", 7)], [], [],
    [], [("a", 8)], [], [("c", 9), ("b", 1)], [],
)  # fmt: skip
OTHERS: Queue = (
    [("a", "x")],
    [("b", "y")],
    [("c", "z")],
    [],
    [("a", "w")],
    [("a", "v"), ("c", "u")],
)
TAGS: Queue = (
    ["#a #b", "#a"],
    ["#b"],
    ["no tag", "#c #a #c"],
    [],
    ["#c"],
    ["#d #a"],
    [],
    [],
    ["#b"],
)


def windows(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    collect("of three", numbers.window(3))
    collect("of three by two", numbers.window(3, 2))
    collect("of one by two", numbers.window(1, 2))
    collect("of two by two", numbers.window(windowDuration=2, slideDuration=2))


def windows_of_windows(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    twos = numbers.window(2, 2)
    collect("fours", twos.window(4, 2))
    collect("sixes by four", twos.map(lambda number: number).window(6, 4))
    collect("overlapping", numbers.window(2).window(2))


def windows_of_half_seconds(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    collect("of one and a half", numbers.window(1.5, 0.5))
    collect("sums", numbers.reduceByWindow(add, None, 1, 1))


def glommed_windows(ssc: Any, streams: Any, collect: Collect) -> None:
    [numbers] = streams
    collect("elements", numbers.window(2).glom().flatMap(list))


def reduced_by_window(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [numbers] = streams
    collect("of three", numbers.reduceByWindow(add, None, 3, 1))
    collect("of three with inverse", numbers.reduceByWindow(add, sub, 3, 1))
    collect("of six with inverse", numbers.reduceByWindow(add, sub, 6, 1))
    collect("greatest of four by two", numbers.reduceByWindow(max, None, 4, 2))


def counted_by_window(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [numbers] = streams
    collect("of two", numbers.countByWindow(2, 1))
    collect("of five", numbers.countByWindow(5, 1))
    collect("of six by three", numbers.countByWindow(6, 3))
    collect("counts of windows", numbers.window(5, 1).count())


def counted_by_value_and_window(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [numbers] = streams
    parity = numbers.map(lambda number: number % 2)
    collect("of three", parity.countByValueAndWindow(3, 1))
    collect("of five", parity.countByValueAndWindow(5, 1))
    collect("of six by two", parity.countByValueAndWindow(6, 2, 3))


def reduced_by_key_and_window(ssc: Any, streams: Any, collect: Collect) -> None:
    [pairs] = streams
    collect("of three", pairs.reduceByKeyAndWindow(add, None, 3))
    collect("of four by two", pairs.reduceByKeyAndWindow(add, None, 4, 2))
    collect("in one partition", pairs.reduceByKeyAndWindow(max, None, 2, 1, numPartitions=1))


def reduced_by_key_and_window_with_inverse(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams
    collect("of three", pairs.reduceByKeyAndWindow(add, sub, 3))
    collect("of five", pairs.reduceByKeyAndWindow(add, sub, 5, 1))
    collect("of eight by two", pairs.reduceByKeyAndWindow(add, sub, 8, 2))


def reduced_by_key_and_window_with_filter(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams
    some = {"numPartitions": 2, "filterFunc": lambda kv: kv[1] > 0}
    collect("of five", pairs.reduceByKeyAndWindow(add, sub, 5, 1, **some))
    collect("of two", pairs.reduceByKeyAndWindow(add, sub, 2, 1, **some))
    large = {"numPartitions": 2, "filterFunc": lambda kv: kv[1] > 4}
    collect("large of six", pairs.reduceByKeyAndWindow(add, sub, 6, 1, **large))


def grouped_by_key_and_window(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams
    collect("of two", pairs.groupByKeyAndWindow(2, 1).mapValues(sorted))
    collect("of six", pairs.groupByKeyAndWindow(6, 1).mapValues(len))
    collect("of four by four", pairs.groupByKeyAndWindow(4, 4, 1).mapValues(sorted))


def joined_windows(ssc: Any, streams: Any, collect: Collect) -> None:
    one, other = streams
    collect("pairs", one.window(3).join(other.window(2)))
    collect("unmatched", one.window(2, 2).leftOuterJoin(other.window(4, 2)))
    collect("of other slides", one.window(2, 1).fullOuterJoin(other.window(2, 2)))


def hashtags(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [texts] = streams
    tags = texts.flatMap(str.split).filter(lambda word: word.startswith("#"))
    counts = tags.map(lambda tag: (tag, 1)).reduceByKeyAndWindow(add, sub, 6, 1)
    ranked = counts.transform(lambda rdd: rdd.sortBy(lambda kv: (-kv[1], kv[0])))
    collect("trending", ranked)


def running_count(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams

    def update(values: Iterable[int], total: int | None) -> int:
        return sum(values) + (total or 0)

    collect("totals", pairs.updateStateByKey(update))
    collect("in three", pairs.updateStateByKey(update, 3))


def state_called_for_every_key(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams

    def update(values: list[int], state: tuple[int, int] | None) -> tuple[int, int] | None:
        calls, total = state or (0, 0)
        total += sum(values)
        return None if not values and calls >= 4 else (calls + 1, total)

    states = pairs.updateStateByKey(update)
    collect("states", states)
    collect("ages", states.map(lambda kv: kv[1][0]).countByValue())


def state_with_initial_rdd(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams

    def update(values: list[int], total: int | None) -> int | None:
        now = sum(values) + (total or 0)
        return now if now != 107 else None

    first = [("a", 100), ("z", 26)]
    collect("from a list", pairs.updateStateByKey(update, initialRDD=first))
    rdd = ssc.sparkContext.parallelize([("b", 1000), ("y", 25)], 3)
    collect("from an rdd", pairs.updateStateByKey(update, 2, rdd))


def state_of_a_window(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams

    def latest(values: list[int], state: int | None) -> int | None:
        return max(values) if values else state

    states = pairs.window(4, 2).updateStateByKey(latest)
    collect("latest", states)
    collect("window of states", states.window(4, 4))


def state_joined(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    one, other = streams

    def update(values: list[int], total: int | None) -> int:
        return sum(values) + (total or 0)

    totals = one.updateStateByKey(update)
    collect("with the total", other.join(totals))
    collect("changes", totals.mapValues(lambda total: total % 2).countByValue())


def checkpointed(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams

    def update(values: list[int], total: int | None) -> int:
        return sum(values) + (total or 0)

    states = pairs.updateStateByKey(update)
    states.checkpoint(2)
    collect("states", states)
    ssc.remember(5)


def inverse_of_a_state(ssc: Any, streams: Any, collect: Collect) -> None:
    ssc.checkpoint(collect.checkpoint)
    [pairs] = streams

    def update(values: list[int], total: int | None) -> int:
        return sum(values) + (total or 0)

    sums = pairs.updateStateByKey(update).reduceByKeyAndWindow(add, sub, 5, 1)
    collect("sums of states", sums)


PROGRAMS = (
    Program(windows, (NUMBERS,), 14),
    Program(windows_of_windows, (NUMBERS,), 12),
    Program(windows_of_half_seconds, (NUMBERS,), 8, interval=0.5),
    Program(glommed_windows, (NUMBERS,), 4),
    Program(reduced_by_window, (NUMBERS,), 13),
    Program(counted_by_window, (NUMBERS,), 13),
    Program(counted_by_value_and_window, (NUMBERS,), 12),
    Program(reduced_by_key_and_window, (PAIRS,), 8),
    Program(reduced_by_key_and_window_with_inverse, (PAIRS,), 13),
    Program(reduced_by_key_and_window_with_filter, (PAIRS,), 13),
    Program(grouped_by_key_and_window, (PAIRS,), 12),
    Program(joined_windows, (PAIRS, OTHERS), 8),
    Program(hashtags, (TAGS,), 12),
    Program(running_count, (PAIRS,), 8),
    Program(state_called_for_every_key, (PAIRS,), 12),
    Program(state_with_initial_rdd, (PAIRS,), 5),
    Program(state_of_a_window, (PAIRS,), 12),
    Program(state_joined, (PAIRS, OTHERS), 7),
    Program(checkpointed, (PAIRS,), 7),
    Program(inverse_of_a_state, (PAIRS,), 9),
)
