from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from tests.operators.patterns.long import compare

import millstream as ms
from millstream.operators.patterns.automaton import FOREVER, Automaton, MatchMemory, Row
from millstream.operators.patterns.program import compiled, skip_of

if TYPE_CHECKING:
    from millstream.operators.patterns.pattern import Pattern

SECOND = 1_000_000
boxes = (
    ms.pattern(key="k", within="20 seconds")
    .step("opened", "kind = 'a'")
    .step("scanned", "kind = 'b' AND box = opened.box", times=(1, 2))
)


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_the_automaton_finds_what_trying_all_subsequences_finds(
    seed: int,
) -> None:
    found = 0
    for more in range(100):
        _, matches, _ = compare(seed + more)
        found += matches

    assert found > 50


def automaton_of(said: Pattern, after_match: str = "skip_past_last") -> Automaton:
    program = compiled(said, {("box",): "integer"} if "box" in str(said) else {})
    return Automaton(program, skip_of(said, after_match, said.at))


def rows_of(said: Pattern, kinds: list[str]) -> list[Row]:
    """Rows a second apart; each is a letter, and a box."""
    conditions = [v.condition for v, _ in said.conditions()]
    return [
        Row(
            second * SECOND,
            sum(1 << n for n, condition in enumerate(conditions) if f"'{kind[0]}'" in condition),
            str(second),
            json.dumps({"box": int(kind[1:] or 0)}),
        )
        for second, kind in enumerate(kinds)
    ]


def found(said: Pattern, kinds: list[str]) -> list[dict[str, list[int]]]:
    """Matches, as the seconds of their rows by step."""
    memory = MatchMemory(pending=rows_of(said, kinds))
    names = [v.name for v, _ in said.conditions()]
    return [
        {name: [int(r.text) for v, r in one.rows if names[v] == name] for name in names}
        for one in automaton_of(said).advance(memory, FOREVER)
    ]


def test_a_match_that_could_still_grow_is_not_lost_to_one_that_is_complete_later() -> None:
    assert found(boxes, ["a1", "b1", "a2", "b2", "b2"]) == [
        {"opened": [0], "scanned": [1]},
        {"opened": [2], "scanned": [3, 4]},
    ]
    assert found(boxes, ["a1", "b1", "a2", "b2", "b2", "b1"]) == [
        {"opened": [0], "scanned": [1, 5]}
    ]


def test_a_match_is_returned_once_those_before_it_can_exclude_it_no_more() -> None:
    memory = MatchMemory(pending=rows_of(boxes, ["a1", "b1", "a2", "b2", "b2"]))
    next_memory = MatchMemory(pending=rows_of(boxes, ["a1", "b1", "a2", "b2", "b2"]))
    automaton, to_next = automaton_of(boxes), automaton_of(boxes, "skip_to_next")

    began = [
        [one.began // SECOND for one in run.advance(memory, frontier)]
        for run, memory in ((automaton, memory), (to_next, next_memory))
        for frontier in (4 * SECOND, 20 * SECOND - 1, 20 * SECOND)
    ]

    assert began == [[], [], [0, 2], [2], [], [0]]


def test_a_step_at_the_end_that_cannot_be_filled_leaves_its_rows_to_the_next() -> None:
    ends = (
        ms.pattern(key="k", within="20 seconds")
        .step("s0", "v = 'a'")
        .step("s1", "v = 'b'", times=2, optional=True)
        .step("s2", "v IN ('b', 'c')", times=(1, 3), optional=True)
    )

    assert found(ends, [*"abc"]) == [{"s0": [0], "s1": [], "s2": [1, 2]}]
    assert found(ends, [*"abbc"]) == [{"s0": [0], "s1": [1, 2], "s2": [3]}]
    assert found(ends, [*"acb"]) == [{"s0": [0], "s1": [], "s2": [1, 2]}]


def test_ways_that_differ_in_a_row_that_a_later_step_compares_are_all_kept() -> None:
    several = (
        ms.pattern(key="k", within="20 seconds")
        .step("opened", "kind = 'a'", times=(1, None))
        .step("scanned", "kind = 'b' AND box = opened.box")
    )

    assert found(several, ["a1", "a2", "b1"]) == [{"opened": [0], "scanned": [2]}]
    assert found(several, ["a1", "a2", "b2"]) == [{"opened": [0, 1], "scanned": [2]}]


def test_beginnings_that_wait_for_what_does_not_come_cost_no_time_with_every_row() -> None:
    said = ms.pattern(key="k", within="1 hour").step("a", "n < 1").step("b", "n > 500")
    automaton = automaton_of(said)
    memory = MatchMemory(pending=[Row(us, 1, "{}") for us in range(8_000)])
    began = time.process_time()

    assert automaton.advance(memory, 8_000) == []

    assert len(memory.begun) == 8_000
    assert time.process_time() - began < 5  # one by one, each shown to all: 50 s
