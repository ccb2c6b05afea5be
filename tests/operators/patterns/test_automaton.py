from __future__ import annotations

import time

import pytest
from tests.operators.patterns.long import forget, hold

import millstream as ms
from millstream.operators.patterns.automaton import Automaton, Memory, Row
from millstream.operators.patterns.program import compiled, skip_of


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_the_automaton_finds_what_trying_all_subsequences_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.operators.patterns.pattern.remembered", forget)
    found = 0
    for more in range(100):
        _, matches, _ = hold(seed + more)
        found += matches

    assert found > 50


def test_beginnings_that_wait_for_what_does_not_come_cost_no_time_with_every_row() -> None:
    said = ms.pattern(key="k", within="1 hour").step("a", "n < 1").step("b", "n > 500")
    automaton = Automaton(compiled(said, {}), skip_of(said, "skip_past_last", said.at))
    memory = Memory(pending=[Row(us, 1, "{}") for us in range(8_000)])
    began = time.process_time()

    assert automaton.advance(memory, 8_000) == []

    assert len(memory.begun) == 8_000
    assert time.process_time() - began < 5  # one by one, each shown to all: 50 s
