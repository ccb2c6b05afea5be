from __future__ import annotations

import pytest
from tests.operators.patterns.long import forget, hold


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
