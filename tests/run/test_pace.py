"""The size of batches, against a simulated source and a simulated query."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from millstream.checkpoint import CheckpointLog
from millstream.model.batch import BatchBound
from millstream.run.admission import Admission
from millstream.run.pace import Pace

TARGET_S = 10.0
FIRST = 100_000


@dataclass(frozen=True)
class Load:
    """A query that takes so many rows a second, and a source that offers twice as few at first."""

    capacity: float
    overhead_s: float
    noise: float
    burst: tuple[float, float]
    seed: int

    def offered(self, since: float, until: float) -> float:
        low, high = self.burst
        in_burst = max(0.0, min(until, high) - max(since, low))
        return self.capacity / 2 * (until - since + 9 * in_burst)

    def batches(self, until: float) -> list[tuple[float, int, float, int]]:
        """Simulate; give the start, rows, seconds and limit of each batch."""
        chance, pace = random.Random(self.seed), Pace(TARGET_S, FIRST)
        clock = last = waiting = 0.0
        found: list[tuple[float, int, float, int]] = []
        while clock < until:
            waiting, last = waiting + self.offered(last, clock), clock
            if (rows := int(min(waiting, pace.amount))) == 0:
                clock += 0.01
                continue
            varied = chance.uniform(1 - self.noise, 1 + self.noise)
            seconds = (self.overhead_s + rows / self.capacity) * varied
            found.append((clock, rows, seconds, pace.amount))
            waiting, clock = waiting - rows, clock + seconds
            pace = pace.after(rows, seconds)
        return found


loads = st.builds(
    Load,
    capacity=st.floats(2_000, 500_000),
    overhead_s=st.floats(0.05, 2),
    noise=st.floats(0, 0.15),
    burst=st.just((60.0, 120.0)),
    seed=st.integers(0, 1000),
)


@given(loads)
def test_in_a_burst_of_ten_times_as_many_rows_three_batches_at_most_are_above_the_target(
    load: Load,
) -> None:
    seconds = [seconds for _, _, seconds, _ in load.batches(900)]

    above = [n for n, length in enumerate(seconds) if length > TARGET_S * 1.5]
    assert len(above) <= 3
    assert not above or above[-1] - above[0] <= 3
    assert max(seconds) <= max(FIRST / load.capacity, TARGET_S) * 1.5


@given(loads)
def test_the_rows_of_a_burst_are_worked_off_in_batches_of_about_the_target(load: Load) -> None:
    batches = load.batches(2400)

    full = [seconds for _, rows, seconds, limit in batches if rows == limit][4:]
    assert not full or sum(full) / len(full) >= TARGET_S * 0.5
    assert batches[-1][1] < batches[-1][3]


@given(loads)
def test_limits_do_not_oscillate(load: Load) -> None:
    limits = [limit for clock, _, _, limit in load.batches(900) if clock >= load.burst[0]]

    turns = [b - a for a, b in pairwise(limits[4:]) if b != a]
    assert sum(1 for a, b in pairwise(turns) if a * b < 0) <= 2


@given(st.integers(1, 10**9), st.integers(0, 10**9), st.floats(0, 10**6))
def test_a_limit_is_never_nothing(limit: int, rows: int, seconds: float) -> None:
    assert Pace(TARGET_S, limit).after(rows, seconds).amount >= 1


def test_a_batch_without_rows_shows_nothing() -> None:
    pace = Pace(TARGET_S, 50)

    assert pace.after(0, 100.0) is pace


def test_a_pace_stays_between_its_floor_and_its_ceiling() -> None:
    pace = Pace(TARGET_S, 50_000, least=1_000, most=100_000)

    assert pace.after(50_000, 10_000).amount == 1_000
    assert pace.after(50_000, 0.5).amount == 100_000


def after(admission: Admission, seconds: float) -> None:
    unused: Any = None
    admission.after(unused, unused, 0, seconds)


@given(loads)
def test_a_receiver_has_room_for_what_a_batch_within_the_target_takes(load: Load) -> None:
    bound, nobody, read = BatchBound.parse("10 seconds"), CheckpointLog(Path()), [0]
    admission = Admission(bound, nobody, cores=2, received=lambda: read[0])
    chance, clock, last = random.Random(load.seed), 1.0, 0.0
    waiting, took = 0.0, list[float]()
    while clock < 600:
        # What finds no room is refused: its sender tries again.
        offered = 10 * load.offered(last, clock)
        waiting, last = min(waiting + offered, admission.room().records), clock
        read[0], waiting = int(waiting), 0.0
        varied = chance.uniform(1 - load.noise, 1 + load.noise)
        took.append((load.overhead_s + read[0] / load.capacity) * varied)
        clock += took[-1]
        after(admission, took[-1])
        assert 1_000 <= admission.room().records <= 100_000
        assert admission.room().batch_s == took[-1]

    assert max(took[2:]) <= TARGET_S * 1.5


def test_a_bound_in_rows_is_the_room_of_a_receiver() -> None:
    bound = BatchBound.parse("500 rows")
    admission = Admission(bound, CheckpointLog(Path()), cores=2, received=lambda: 500)
    after(admission, 60)

    assert admission.room().records == 500
