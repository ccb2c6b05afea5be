"""The size of batches, against a simulated source and a simulated query."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from millstream.checkpoint import CheckpointLog
from millstream.model.batch import BatchBound
from millstream.run.admission import Admission
from millstream.run.batch_size import BatchCost, Pace

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


def after(admission: Admission, rows: int, seconds: float) -> None:
    unused: Any = None
    admission.after(unused, unused, 0, BatchCost(rows, rows, seconds))


@given(loads)
def test_a_receiver_has_room_for_what_a_batch_within_the_target_takes(load: Load) -> None:
    bound, nobody = BatchBound.parse("10 seconds"), CheckpointLog(Path())
    admission = Admission(bound, nobody, cores=2, is_received=True)
    chance, clock, last = random.Random(load.seed), 1.0, 0.0
    waiting, took = 0.0, list[float]()
    while clock < 600:
        # What finds no room is refused: its sender tries again.
        offered = 10 * load.offered(last, clock)
        waiting, last = min(waiting + offered, admission.room().records), clock
        rows, waiting = int(waiting), 0.0
        varied = chance.uniform(1 - load.noise, 1 + load.noise)
        took.append((load.overhead_s + rows / load.capacity) * varied)
        clock += took[-1]
        after(admission, rows, took[-1])
        assert 1_000 <= admission.room().records <= 100_000
        assert admission.room().batch_s == took[-1]

    assert max(took[2:]) <= TARGET_S * 1.5


def test_a_bound_in_rows_is_the_room_of_a_receiver() -> None:
    bound = BatchBound.parse("500 rows")
    admission = Admission(bound, CheckpointLog(Path()), cores=2, is_received=True)
    after(admission, 500, 60)

    assert admission.room().records == 500


def test_a_receiver_has_no_more_room_than_its_readers_take() -> None:
    taken = [20_000]
    admission = Admission(
        BatchBound.parse("10 seconds"),
        CheckpointLog(Path()),
        cores=2,
        is_received=True,
        taken=lambda: taken[0],
    )
    after(admission, 5_000, 0.5)
    assert admission.room().records == 20_000

    taken[0] = 100
    after(admission, 5_000, 0.5)
    # What it takes itself in a tenth of its target.
    assert admission.room().records == 10_000


def test_what_readers_take_is_converted_by_what_the_last_batch_has_written() -> None:
    pace = Pace(TARGET_S, 1 << 30)

    # 1 MB were 4,000 rows, in 0.1 s; 100,000 rows are 25 MB, and a tenth of the target is 10 MB.
    assert pace.for_readers(100_000, BatchCost(1_000_000, 4_000, 0.1)) == 25_000_000
    assert pace.for_readers(1_000, BatchCost(1_000_000, 4_000, 0.1)) == 10_000_000
    assert pace.for_readers(None, BatchCost(1_000_000, 4_000, 0.1)) == pace.amount
    assert pace.for_readers(1_000, BatchCost(1_000_000, 0, 0.1)) == pace.amount


@dataclass(frozen=True)
class Stage:
    """A query that takes so many rows a second, and writes a share of them for the next one."""

    capacity: float
    overhead_s: float
    writes: float = 1.0


@dataclass
class Chain:
    """Queries that read each other's batches, whole ones, from a source with a burst."""

    stages: tuple[Stage, ...]
    rate: float
    noise: float
    seed: int
    are_readers_asked: bool = True
    burst: tuple[float, float] = (60.0, 120.0)
    waiting: float = 0.0
    """How many records are in the source at the end."""

    def batches(self, until: float) -> list[list[tuple[float, int, float]]]:
        """Simulate; give the start, rows and seconds of each batch of each query."""
        chance, count = random.Random(self.seed), len(self.stages)
        paces, limits = [Pace(TARGET_S, FIRST)] * count, [FIRST] * count
        taken: list[int | None] = [None] * (count + 1)
        landed: list[list[int]] = [[] for _ in range(count + 1)]
        running: list[tuple[float, int, float] | None] = [None] * count
        found: list[list[tuple[float, int, float]]] = [[] for _ in range(count)]
        clock = last = 0.0
        while clock < until:
            self.waiting, last = self.waiting + self._offered(last, clock), clock
            for n, stage in enumerate(self.stages):
                if (batch := running[n]) and batch[0] + batch[2] <= clock:
                    _, rows, seconds = batch
                    written = int(rows * stage.writes)
                    landed[n + 1].append(written)
                    paces[n], running[n] = paces[n].after(rows, seconds), None
                    wanted = taken[n + 1] if self.are_readers_asked else None
                    limits[n] = paces[n].for_readers(wanted, BatchCost(rows, written, seconds))
                    taken[n] = limits[n]
                    found[n].append(batch)
            for n, stage in enumerate(self.stages):
                if running[n] is None and (rows := self._read(n, limits[n], landed[n])):
                    varied = chance.uniform(1 - self.noise, 1 + self.noise)
                    running[n] = clock, rows, (stage.overhead_s + rows / stage.capacity) * varied
            ends = [begun + seconds for begun, _, seconds in filter(None, running)]
            clock = max(min([*ends, clock + 1]), clock + 0.001)
        return found

    def _offered(self, since: float, until: float) -> float:
        low, high = self.burst
        return self.rate * (until - since + 9 * max(0.0, min(until, high) - max(since, low)))

    def _read(self, n: int, limit: int, landed: list[int]) -> int:
        if n == 0:
            rows = int(min(self.waiting, limit))
            self.waiting -= rows
            return rows
        rows = 0
        while landed and (not rows or rows + landed[0] <= limit):
            rows += landed.pop(0)
        return rows


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Landing, up to two tables, each up to ten times as slow as what it reads."""
    capacity = draw(st.floats(2_000, 500_000))
    overheads, noise = st.floats(0.05, 1), draw(st.floats(0, 0.15))
    slower = draw(st.lists(st.floats(1, 9), min_size=1, max_size=2))
    stages = [Stage(capacity, draw(overheads))]
    rate = capacity
    for times in slower:
        stages[-1] = replace(stages[-1], writes=draw(st.floats(0.2, 1)))
        capacity = max(capacity / times, 200)
        stages.append(Stage(capacity, draw(overheads)))
    share = 1.0
    for stage in stages:
        rate, share = min(rate, stage.capacity / share), share * stage.writes
    return Chain(tuple(stages), rate / 2, noise, draw(st.integers(0, 1000)))


@given(chains())
def test_in_a_burst_at_most_three_batches_of_a_reader_are_above_the_target(chain: Chain) -> None:
    for batches in chain.batches(600):
        in_burst = [seconds for begun, _, seconds in batches if begun >= chain.burst[0]]
        assert sum(seconds > TARGET_S * 1.5 for seconds in in_burst) <= 3


def test_without_the_bound_of_its_readers_a_landing_makes_batches_too_large_for_them() -> None:
    stages = Stage(20_000, 0.3), Stage(5_000, 0.3)

    with_bound, without = (
        [
            seconds
            for begun, _, seconds in Chain(stages, 2_500, 0.1, 7, is_asked).batches(600)[1]
            if begun >= 60 and seconds > TARGET_S * 1.5
        ]
        for is_asked in (True, False)
    )
    assert len(with_bound) <= 3
    assert len(without) > 3


@given(chains())
def test_the_last_of_several_queries_is_as_fast_in_a_burst_as_it_can_be(chain: Chain) -> None:
    *_, last = chain.batches(300)

    slowest = chain.rate * 2
    read = sum(rows for begun, rows, _ in last if 70 <= begun < 120)
    share = math.prod(stage.writes for stage in chain.stages[:-1])
    assert read >= slowest * share * 50 * 0.5
