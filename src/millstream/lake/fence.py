"""The fence: which driver may write a target, which batch is next, and what is a replay.

The rule of docs/guarantees.md, for tables, stores and deliveries alike. Nothing is read or written
here: a target reads its record, asks, and writes the new record in one atomic step with its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from millstream.errors import fault


class Decision(Enum):
    """What becomes of a driver that takes a target, of a batch, or of a query that starts."""

    APPLY = "the driver, batch or query is accepted"
    SKIP = "the target has the batch"
    CHANGED = "the target has the batch, with other rows"
    FOREIGN = "another dataset writes there"
    OVERTAKEN = "another driver has taken the target"
    RESTORED = "the target lacks batches"
    AHEAD = "the target has batches that the checkpoint does not know"


@dataclass(frozen=True, slots=True)
class Fence:
    """The record of a target: its writer, and the last batch written."""

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
    """What the writer records with the batch."""

    @property
    def batches(self) -> str:
        """Which batches the target has, as errors name them."""
        return "no batch" if self.batch < 0 else f"batches up to {self.batch}"

    def with_driver(self, claim: Claim) -> Fence:
        """Name the driver that has taken the target."""
        return replace(self, epoch=claim.epoch, owner=claim.owner)

    def with_batch(self, pending: PendingBatch, note: str) -> Fence:
        """Name the batch that is written."""
        return replace(
            self,
            checkpoint=pending.checkpoint,
            batch=pending.batch,
            digest=pending.digest,
            note=note,
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A driver, as it identifies itself to a target."""

    writer: str
    epoch: int
    owner: str

    def first_fence(self) -> Fence:
        """Return the first record of a target."""
        return Fence(self.writer, self.epoch, self.owner)


@dataclass(frozen=True, slots=True)
class PendingBatch:
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

    @property
    def batches(self) -> str:
        """Which batches it knows, as errors name them."""
        return "none" if self.planned < 0 else f"batches up to {self.planned}"


def on_take(held: Fence | None, claim: Claim, logged: Logged | None = None) -> Decision:
    """Decide whether a driver may take a target; `logged` is checked too, if it is known."""
    if held is None:
        return Decision.APPLY
    if held.writer != claim.writer:
        return Decision.FOREIGN
    # Epochs are counted by a home: another home, which starts over, may have lower ones.
    of_this_home = not held.writer or (
        logged is not None and held.batch >= 0 and held.checkpoint == logged.checkpoint
    )
    if of_this_home and held.epoch > claim.epoch:
        return Decision.OVERTAKEN
    return Decision.APPLY if logged is None else on_start(held, logged)


def on_start(held: Fence, logged: Logged) -> Decision:
    """Decide whether a query may continue from its checkpoint."""
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


def on_batch(held: Fence | None, claim: Claim, pending: PendingBatch) -> Decision:
    """Decide whether a batch is written, or is there already."""
    decision = on_change(held, claim)
    if held is None or decision is not Decision.APPLY:
        return decision
    if not has_batch(held, pending.batch):
        is_next = pending.is_sparse or held.batch == pending.batch - 1
        return Decision.APPLY if is_next else Decision.RESTORED
    return on_retry(held, pending)


def has_batch(held: Fence, batch: int) -> bool:
    """Return whether a target has a batch, which then is computed without writing it."""
    return held.batch >= batch


def on_retry(held: Fence, pending: PendingBatch) -> Decision:
    """Decide whether a batch that a target has was computed with the same rows again."""
    is_changed = held.batch == pending.batch and held.digest != pending.digest
    return Decision.CHANGED if is_changed else Decision.SKIP


def refuse_overtaken(decision: Decision, held: Fence | None, claim: Claim, target: str) -> None:
    """Refuse a driver that another one has overtaken.

    Raises:
        OvertakenError: The decision on a target says so.
    """
    if held is not None and decision is Decision.OVERTAKEN:
        raise fault("OVERTAKEN", theirs=held.epoch, mine=claim.epoch, table=target)


def check_table(name: str, held: Fence, logged: Logged, checkpoint: str) -> None:
    """Check that a table and the checkpoint of its query agree.

    Raises:
        CHECKPOINT_RESET: The table is ahead of the checkpoint.
        TABLE_RESTORED: The checkpoint is ahead of the table.
    """
    match on_start(held, logged):
        case Decision.RESTORED:
            raise fault(
                "TABLE_RESTORED",
                table=name,
                held=held.batches,
                checkpoint=checkpoint,
                knows=logged.committed,
            )
        case Decision.AHEAD:
            raise fault(
                "CHECKPOINT_RESET",
                table=name,
                batch=held.batch,
                checkpoint=checkpoint,
                known=logged.batches,
            )
