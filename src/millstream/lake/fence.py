"""The fence: who may write a target, which batch is next, and what is a replay.

The rule of docs/guarantees.md, for tables, stores and deliveries alike. Nothing is read or written
here: a target reads its record, asks, and writes the new record in one atomic step with its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Decision(Enum):
    """What becomes of a driver that takes a target, of a batch, or of a query that starts."""

    APPLY = "go on"
    SKIP = "the target has the batch"
    CHANGED = "the target has the batch, with other rows"
    FOREIGN = "another dataset writes there"
    OVERTAKEN = "another driver has taken the target"
    RESTORED = "the target lacks batches"
    AHEAD = "the target has batches that the checkpoint does not know"


@dataclass(frozen=True, slots=True)
class Fence:
    """The record of a target: who writes it, and how far they got."""

    writer: str
    """The app and its dataset; empty for a target inside the home, which has no other."""
    epoch: int
    """Of the driver that took it last."""
    owner: str
    """Drawn by that driver: two homes, one copied from the other, may count the same epochs."""
    checkpoint: str = ""
    """The query whose batches these are."""
    batch: int = -1
    digest: str = ""
    note: str = ""
    """What the writer wants to find again."""

    def with_driver(self, claim: Claim) -> Fence:
        """Name the driver that has taken the target."""
        return replace(self, epoch=claim.epoch, owner=claim.owner)

    def with_batch(self, turn: Turn, note: str) -> Fence:
        """Name the batch that is written."""
        return replace(
            self, checkpoint=turn.checkpoint, batch=turn.batch, digest=turn.digest, note=note
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A driver, as it makes itself known to a target."""

    writer: str
    epoch: int
    owner: str

    def first_fence(self) -> Fence:
        """Give the record of a target that had none."""
        return Fence(self.writer, self.epoch, self.owner)


@dataclass(frozen=True, slots=True)
class Turn:
    """A batch to be written."""

    checkpoint: str
    batch: int
    digest: str
    is_sparse: bool = False
    """Whether the target has only some of the batches, so that none before this one is missing."""


@dataclass(frozen=True, slots=True)
class Logged:
    """What a checkpoint knows of its batches."""

    checkpoint: str
    committed: int
    planned: int


def on_take(held: Fence | None, claim: Claim, logged: Logged | None = None) -> Decision:
    """Decide whether a driver may take a target; `logged` is checked too, if it is known."""
    if held is None:
        return Decision.APPLY
    if held.writer != claim.writer:
        return Decision.FOREIGN
    # Epochs are counted by a home: another one, which begins anew, may have lower ones.
    of_this_home = not held.writer or (
        logged is not None and held.batch >= 0 and held.checkpoint == logged.checkpoint
    )
    if of_this_home and held.epoch > claim.epoch:
        return Decision.OVERTAKEN
    return Decision.APPLY if logged is None else on_start(held, logged)


def on_start(held: Fence, logged: Logged) -> Decision:
    """Decide whether a query may go on from its checkpoint."""
    is_other = held.batch >= 0 and held.checkpoint != logged.checkpoint
    if is_other or held.batch > logged.planned:
        return Decision.AHEAD
    return Decision.RESTORED if held.batch < logged.committed else Decision.APPLY


def on_change(held: Fence | None, claim: Claim) -> Decision:
    """Decide whether a driver may change a target that it has taken."""
    if held is None:
        return Decision.RESTORED
    is_holder = (held.owner, held.epoch) == (claim.owner, claim.epoch)
    return Decision.APPLY if is_holder else Decision.OVERTAKEN


def on_batch(held: Fence | None, claim: Claim, turn: Turn) -> Decision:
    """Decide whether a batch is written, or is there already."""
    decision = on_change(held, claim)
    if held is None or decision is not Decision.APPLY:
        return decision
    if held.batch < turn.batch:
        is_next = turn.is_sparse or held.batch == turn.batch - 1
        return Decision.APPLY if is_next else Decision.RESTORED
    is_changed = held.batch == turn.batch and held.digest != turn.digest
    return Decision.CHANGED if is_changed else Decision.SKIP
