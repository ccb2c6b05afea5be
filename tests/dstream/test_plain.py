"""The rules in plain Python give what is recorded of pyspark.streaming; no JVM is needed."""

from __future__ import annotations

from operator import add, sub
from typing import TYPE_CHECKING, Any

import pytest
from tests.dstream.chance import INITIAL
from tests.dstream.plain import Stream, Window, counted, joined, mapped, updated
from tests.dstream.program import written
from tests.dstream.programs.window import NUMBERS, OTHERS, PAIRS, TAGS
from tests.dstream.record import recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.dstream.program import Queue

RECORDED = recorded()["programs"]


def total(values: list[int], state: int | None) -> int:
    return sum(values) + (state or 0)


def but_107(values: list[int], state: int | None) -> int | None:
    return now if (now := total(values, state)) != 107 else None


def latest(values: list[int], state: int | None) -> int | None:
    return max(values) if values else state


def positive(pair: tuple[str, int]) -> bool:
    return pair[1] > 0


def keyed(stream: Stream) -> Stream:
    return stream.each(lambda batch: [(1, element) for element in batch])


def values(stream: Stream) -> Stream:
    return stream.each(lambda batch: [value for _, value in batch])


def of(queue: Queue, count: int) -> Stream:
    return Stream.of([[*batch] for batch in queue], count)


def sums(width: int, slide: int, count: int, **more: Any) -> Stream:
    return Window(width, slide, add, sub, **more)(of(PAIRS, count))


def tags() -> Stream:
    words = of(TAGS, 12).each(lambda batch: [word for text in batch for word in text.split()])
    ones = words.each(lambda batch: [(word, 1) for word in batch if word.startswith("#")])
    return Window(6, 1, add, sub)(ones)


RULES: dict[tuple[str, str], Callable[[], Stream]] = {
    ("windows", "of three by two"): lambda: of(NUMBERS, 14).window(3, 2),
    ("windows", "of one by two"): lambda: of(NUMBERS, 14).window(1, 2),
    ("windows_of_windows", "sixes by four"): lambda: of(NUMBERS, 12).window(2, 2).window(6, 4),
    ("windows_of_windows", "overlapping"): lambda: of(NUMBERS, 12).window(2, 1).window(2, 1),
    ("reduced_by_window", "of six with inverse"): lambda: values(
        Window(6, 1, add, sub)(keyed(of(NUMBERS, 13)))
    ),
    ("reduced_by_window", "of three with inverse"): lambda: values(
        Window(3, 1, add, sub)(keyed(of(NUMBERS, 13)))
    ),
    ("reduced_by_window", "greatest of four by two"): lambda: values(
        Window(4, 2, max)(keyed(of(NUMBERS, 13)))
    ),
    ("counted_by_window", "counts of windows"): lambda: (
        of(NUMBERS, 13).window(5, 1).each(lambda batch: [len(batch)])
    ),
    ("counted_by_value", "values"): lambda: of(([5, 3, 8, 1], [2], [], [7, 7, 4, 9, 6]), 4).each(
        counted
    ),
    ("reduced_by_key_and_window_with_inverse", "of three"): lambda: sums(3, 1, 13),
    ("reduced_by_key_and_window_with_inverse", "of five"): lambda: sums(5, 1, 13),
    ("reduced_by_key_and_window_with_inverse", "of eight by two"): lambda: sums(8, 2, 13),
    ("reduced_by_key_and_window_with_filter", "of five"): lambda: sums(5, 1, 13, keep=positive),
    ("reduced_by_key_and_window_with_filter", "of two"): lambda: sums(2, 1, 13, keep=positive),
    ("reduced_by_key_and_window_with_filter", "large of six"): lambda: sums(
        6, 1, 13, keep=lambda pair: pair[1] > 4
    ),
    ("hashtags", "trending"): tags,
    ("running_count", "totals"): lambda: updated(of(PAIRS, 8), total),
    ("state_with_initial_rdd", "from a list"): lambda: updated(
        of(PAIRS, 5), but_107, [("a", 100), ("z", 26)]
    ),
    ("state_of_a_window", "latest"): lambda: updated(of(PAIRS, 12).window(4, 2), latest),
    ("inverse_of_a_state", "sums of states"): lambda: Window(5, 1, add, sub)(
        updated(of(PAIRS, 9), total)
    ),
    ("joined_windows", "of other slides"): lambda: (
        of(PAIRS, 8)
        .window(2, 1)
        .each_with(of(OTHERS, 8).window(2, 2), lambda a, b: joined(a, b, left=True, right=True))
    ),
    ("joined_windows", "unmatched"): lambda: (
        of(PAIRS, 8)
        .window(2, 2)
        .each_with(of(OTHERS, 8).window(4, 2), lambda a, b: joined(a, b, left=True))
    ),
}


@pytest.mark.parametrize(("program", "output"), RULES, ids=lambda value: value)
def test_a_rule_gives_what_pyspark_gave(program: str, output: str) -> None:
    stream = RULES[program, output]()

    assert written({output: [*stream.batches.items()]})[output] == RECORDED[program][output]


def test_a_key_times_out_when_its_last_value_is_older_than_the_time_out() -> None:
    def call(key: str, value: int | None, state: int | None) -> tuple[Any, Any]:
        return ((key, value), (state or 0) + (value or 0))

    stream = Stream.of([[("a", 1)], [(0, 2)], [], [], []], 5)

    given, kept = mapped(stream, call, 2, INITIAL)

    assert given.batches == {
        1: [("a", 1)],
        2: [(0, 2)],
        3: [],
        4: [(9, None), ("a", None)],
        5: [(0, None)],
    }
    assert kept.batches[3] == [(0, 42), (9, 2), ("a", 1)]
    assert kept.batches[5] == []
