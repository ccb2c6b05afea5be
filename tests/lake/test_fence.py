"""The fence by itself, against a second implementation of the rule in docs/guarantees.md."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st
from tests.faults import raises

from millstream.lake.fence import (
    Claim,
    Decision,
    Fence,
    Logged,
    PendingBatch,
    check_table,
    has_batch,
    on_batch,
    on_change,
    on_retry,
    on_start,
    on_take,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GO = Decision.APPLY


@dataclass(frozen=True)
class Driver:
    """A driver: which home it is of, and the how-manieth there."""

    home: int
    epoch: int


@dataclass
class Home:
    """A home: what its checkpoint knows, and how many drivers it has had."""

    checkpoint: str
    epochs: int = 0
    committed: int = -1
    planned: int = -1


@dataclass
class Story:
    """The oracle: it keeps no record, but all that ever happened to the target, in order."""

    is_in_home: bool
    takes: list[Driver] = field(default_factory=list)
    batches: list[tuple[str, int, str]] = field(default_factory=list)
    """Checkpoint, number and hash."""

    def on_take(self, driver: Driver, home: Home) -> Decision:
        if not self.takes:
            return GO
        is_compared = self.is_in_home or (self.batches and self.batches[-1][0] == home.checkpoint)
        if is_compared and self.takes[-1].epoch > driver.epoch:
            return Decision.OVERTAKEN
        return GO if self.is_in_home else self.on_start(home)

    def on_start(self, home: Home) -> Decision:
        if any(checkpoint != home.checkpoint for checkpoint, _, _ in self.batches[-1:]):
            return Decision.AHEAD
        last = max((number for _, number, _ in self.batches), default=-1)
        if last > home.planned:
            return Decision.AHEAD
        return Decision.RESTORED if home.committed > last else GO

    def on_batch(self, driver: Driver, number: int, digest: str) -> Decision:
        if not self.takes:
            return Decision.RESTORED
        if self.takes[-1] != driver:
            return Decision.OVERTAKEN
        known = {number: digest for _, number, digest in self.batches}
        if number in known or any(later > number for later in known):
            is_last = number == max(known)
            return Decision.CHANGED if is_last and known[number] != digest else Decision.SKIP
        return GO if number == 0 or number - 1 in known else Decision.RESTORED


@dataclass
class World:
    """A target with its record, the homes whose drivers write to it, and the oracle's story."""

    story: Story
    homes: list[Home]
    record: Fence | None = None
    saved: tuple[Fence | None, Story] | None = None
    drivers: list[Driver] = field(default_factory=list)

    def claim(self, driver: Driver) -> Claim:
        owner = f"{driver.home}.{driver.epoch}"
        return Claim("" if self.story.is_in_home else "app/d", driver.epoch, owner)

    def start(self, number: int) -> None:
        """Have a home start a driver, which takes the target."""
        home = self.homes[number]
        home.epochs += 1
        self.take(Driver(number, home.epochs))

    def take(self, driver: Driver) -> None:
        """Have a driver take the target, also one that was paused before it did."""
        home, claim = self.homes[driver.home], self.claim(driver)
        logged = Logged(home.checkpoint, home.committed, home.planned)
        decision = on_take(self.record, claim, None if self.story.is_in_home else logged)
        assert decision is self.story.on_take(driver, home)
        if decision is GO:
            self.record = self.record.with_driver(claim) if self.record else claim.first_fence()
            self.story.takes.append(driver)
            self.drivers.append(driver)

    def write(self, driver: Driver, number: int, digest: str, *, is_answered: bool) -> None:
        home = self.homes[driver.home]
        pending = PendingBatch(home.checkpoint, number, digest)
        decision = on_batch(self.record, self.claim(driver), pending)
        assert decision is self.story.on_batch(driver, number, digest)
        home.planned = max(home.planned, number)
        if decision is GO:
            assert self.record is not None
            self.record = self.record.with_batch(pending, "")
            self.story.batches.append((home.checkpoint, number, digest))
        if is_answered and decision in (GO, Decision.SKIP, Decision.CHANGED):
            home.committed = max(home.committed, number)

    def save(self) -> None:
        story = self.story
        self.saved = (
            self.record,
            replace(story, takes=list(story.takes), batches=list(story.batches)),
        )

    def restore(self) -> None:
        if self.saved is not None:
            self.record, story = self.saved
            self.story.takes, self.story.batches = list(story.takes), list(story.batches)


STEPS = st.one_of(
    st.tuples(st.just("start"), st.integers(0, 1)),
    st.tuples(st.just("take again"), st.integers(0, 5)),
    st.tuples(st.just("next batch"), st.integers(0, 5), st.sampled_from("ab"), st.booleans()),
    st.tuples(st.just("any batch"), st.integers(0, 5), st.sampled_from("ab"), st.integers(0, 5)),
    st.tuples(st.just("plan"), st.integers(0, 1), st.integers(0, 5)),
    st.tuples(st.sampled_from(["save", "restore"])),
)


@given(st.lists(STEPS, min_size=1, max_size=30), st.booleans(), st.booleans())
@settings(max_examples=1500, deadline=None)
def test_any_history_of_drivers_is_decided_as_the_rule_says(
    steps: list[tuple[object, ...]], is_in_home: bool, is_copied: bool
) -> None:
    homes = [Home("query"), Home("query" if is_copied else "another")]
    world = World(Story(is_in_home), homes[:1] if is_in_home else homes)
    restored = False
    for step in steps:
        match step:
            case ("start", int(number)):
                world.start(number % len(world.homes))
            case ("take again", int(who)) if world.drivers:
                world.take(world.drivers[who % len(world.drivers)])
            case ("next batch", int(who), str(digest), bool(is_answered)) if world.drivers:
                driver = world.drivers[who % len(world.drivers)]
                number = world.homes[driver.home].committed + 1
                world.write(driver, number, digest, is_answered=is_answered)
            case ("any batch", int(who), str(digest), int(number)) if world.drivers:
                driver = world.drivers[who % len(world.drivers)]
                world.write(driver, number, digest, is_answered=False)
            case ("plan", int(number), int(batch)):
                home = world.homes[number % len(world.homes)]
                home.planned = max(home.planned, batch)
            case ("save",):
                world.save()
            case ("restore",):
                restored = restored or world.saved is not None
                world.restore()

    # No batch is applied twice, and none is left out.
    numbers = [number for _, number, _ in world.story.batches]
    assert numbers == list(range(len(numbers)))
    if not restored and len(world.homes) == 1:
        assert world.homes[0].committed < len(numbers)


@dataclass
class Place:
    """A target, a checkpoint and two drivers; each act is one transaction of the target."""

    fence: Fence | None = None
    rows: list[int] = field(default_factory=list)
    committed: int = -1
    epoch: int = 0
    drivers: dict[int, tuple[Claim, int]] = field(default_factory=dict)
    """Who is at work, and which batch comes next."""
    last_taker: int = -1

    def take(self, who: int) -> None:
        self.epoch += 1
        claim = Claim("app/d", self.epoch, f"{who}.{self.epoch}")
        logged = Logged("query", self.committed, self.committed + 1)
        assert on_take(self.fence, claim, logged) is GO
        self.fence = self.fence.with_driver(claim) if self.fence else claim.first_fence()
        self.drivers[who], self.last_taker = (claim, self.committed + 1), who

    def write(self, who: int, *, is_answered: bool) -> None:
        if who not in self.drivers:
            return
        claim, batch = self.drivers[who]
        pending = PendingBatch("query", batch, "digest")
        decision = on_batch(self.fence, claim, pending)
        assert (decision is Decision.OVERTAKEN) == (who != self.last_taker)
        if decision is Decision.OVERTAKEN:
            del self.drivers[who]
            return
        if decision is GO:
            assert self.fence is not None
            self.rows.append(batch)
            self.fence = self.fence.with_batch(pending, "")
        if is_answered:
            self.committed = max(self.committed, batch)
            self.drivers[who] = (claim, batch + 1)
        else:
            del self.drivers[who]


def test_no_schedule_of_two_drivers_loses_repeats_or_lets_a_stale_one_write() -> None:
    acts: list[Callable[[Place], None]] = [partial(Place.take, who=who) for who in (0, 1)]
    for who, is_answered in itertools.product((0, 1), (True, False)):
        acts.append(partial(Place.write, who=who, is_answered=is_answered))

    for schedule in itertools.product(acts, repeat=6):
        place = Place()
        for act in schedule:
            act(place)
        assert place.rows == list(range(len(place.rows)))
        assert place.committed < len(place.rows)


HELD = Fence("app/d", 3, "me", "query", batch=5, digest="five")
ME = Claim("app/d", 3, "me")


@pytest.mark.parametrize(
    ("pending", "decision"),
    [
        (PendingBatch("query", 4, "other"), Decision.SKIP),
        (PendingBatch("query", 5, "five"), Decision.SKIP),
        (PendingBatch("query", 5, "other"), Decision.CHANGED),
        (PendingBatch("query", 6, "six"), Decision.APPLY),
        (PendingBatch("query", 7, "seven"), Decision.RESTORED),
        (PendingBatch("query", 7, "seven", is_sparse=True), Decision.APPLY),
    ],
)
def test_a_batch_is_applied_skipped_or_refused(pending: PendingBatch, decision: Decision) -> None:
    assert on_batch(HELD, ME, pending) is decision


@pytest.mark.parametrize("other", [replace(ME, epoch=4), replace(ME, epoch=2), Claim("", 3, "you")])
def test_only_the_driver_that_took_a_target_last_changes_it(other: Claim) -> None:
    assert on_change(HELD, other) is Decision.OVERTAKEN
    assert on_batch(HELD, other, PendingBatch("query", 5, "five")) is Decision.OVERTAKEN
    assert on_change(HELD, ME) is Decision.APPLY
    assert on_change(None, ME) is Decision.RESTORED


def test_a_target_of_another_dataset_is_not_taken() -> None:
    assert on_take(HELD, replace(ME, writer="app/other", epoch=9)) is Decision.FOREIGN


@pytest.mark.parametrize(
    ("logged", "decision"),
    [
        (Logged("query", 5, 5), Decision.APPLY),
        (Logged("query", 4, 5), Decision.APPLY),
        (Logged("query", 6, 6), Decision.RESTORED),
        (Logged("query", 4, 4), Decision.AHEAD),
        (Logged("another", 5, 5), Decision.AHEAD),
        (Logged("another", 6, 6), Decision.AHEAD),
    ],
)
def test_a_query_starts_if_the_target_fits_its_checkpoint(
    logged: Logged, decision: Decision
) -> None:
    assert on_start(HELD, logged) is decision
    assert on_take(HELD, ME, logged) is decision


@pytest.mark.parametrize(
    ("batch", "code"), [(1, "TABLE_RESTORED"), (2, None), (3, None), (4, "CHECKPOINT_RESET")]
)
def test_a_table_is_between_what_is_committed_and_what_is_planned(
    batch: int, code: str | None
) -> None:
    held, logged = Fence("", 1, "", "q", batch), Logged("q", committed=2, planned=3)

    if code is None:
        check_table("clean", held, logged, "home/checkpoints/clean")
    else:
        with raises(code):
            check_table("clean", held, logged, "home/checkpoints/clean")


@pytest.mark.parametrize(
    ("batch", "digest", "decision"),
    [(2, "same", Decision.SKIP), (2, "other", Decision.CHANGED), (1, "other", Decision.SKIP)],
)
def test_only_the_last_batch_is_compared_with_its_retry(
    batch: int, digest: str, decision: Decision
) -> None:
    held = Fence("", 1, "", "q", 2, "same")

    assert has_batch(held, batch)
    assert on_retry(held, PendingBatch("q", batch, digest)) is decision
