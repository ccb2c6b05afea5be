"""The calls of a function of a key: the same however rows arrive, and nothing lost."""

from __future__ import annotations

import random

import pytest
from tests.operators.state.long import hold


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_calls_depend_on_event_times_alone_as_plain_python_says(seed: int) -> None:
    found = sum(hold(random.Random(seed + more)) for more in range(100))

    assert found > 300
