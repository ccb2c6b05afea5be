"""The fence of a store: which drivers may take it, and the errors for those that may not."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError, fault
from millstream.lake.fence import (
    Claim,
    Decision,
    Logged,
    on_batch,
    on_start,
    on_take,
    refuse_overtaken,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.lake.fence import Fence, PendingBatch


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver that writes to a place: it takes the fence once, then hands batches over."""

    writer: str
    epoch: int
    checkpoint: str = ""
    """Empty before the first batch of all."""
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    folder: Path | None = None
    """Of the home, for a sink that cannot keep its fence beside the rows."""
    committed: int = -1
    """The last batch that the checkpoint has committed, read before a store is looked at."""
    planned: Callable[[], int] | None = None
    """Reads the last batch that it has planned, later: the previous driver may still be running."""
    log: str = "its checkpoint"
    """The folder of the checkpoint, as errors name it."""

    @property
    def claim(self) -> Claim:
        """How it identifies itself to a store."""
        return Claim(self.writer, self.epoch, self.owner)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a store, as errors name it."""

    name: str
    forget: str
    """What to run in the store to delete the rows and the fence."""


def take_fence(held: Fence | None, driver: Driver, place: Place) -> Fence:
    """Return the fence after a driver has taken it.

    A driver that may not take it is refused here, before anything is changed: it must not shut out
    the driver that is running.

    Raises:
        STORE_TAKEN: Another dataset writes there.
        OvertakenError: A later driver was here already.
        StoreRestoredError: The store lacks batches.
        StoreAheadError: The store has batches of another checkpoint.
    """
    if held is None:
        return driver.claim.first_fence()
    planned = held.batch if driver.planned is None else driver.planned()
    logged = Logged(driver.checkpoint, driver.committed, planned)
    decision = on_take(held, driver.claim, logged)
    if decision is Decision.FOREIGN:
        raise fault(
            "STORE_TAKEN",
            store=place.name,
            by=held.writer,
            writer=driver.writer,
            forget=place.forget,
        )
    refuse_overtaken(decision, held, driver.claim, place.name)
    _refuse_unfit(decision, held, place, logged, driver.log)
    return held.with_driver(driver.claim)


def check_against_checkpoint(held: Fence, place: Place, logged: Logged, log: str) -> None:
    """Check the fence of a store against the checkpoint of its query.

    Args:
        held: What the store says.
        place: Where.
        logged: What the checkpoint says.
        log: Its folder.

    Raises:
        StoreRestoredError: The store lacks batches.
        StoreAheadError: The store has batches of another checkpoint.
    """
    _refuse_unfit(on_start(held, logged), held, place, logged, log)


def admit_batch(
    held: Fence | None, driver: Driver, pending: PendingBatch, place: Place
) -> tuple[Fence, Decision]:
    """Decide inside the store's transaction whether a batch is written, or is there already.

    Raises:
        OvertakenError: Another driver took the place; nothing may be written.
        StoreRestoredError: The batch before this one is not there any more.
    """
    decision = on_batch(held, driver.claim, pending)
    refuse_overtaken(decision, held, driver.claim, place.name)
    if held is None or decision is Decision.RESTORED:
        held = held or driver.claim.first_fence()
        raise _restored(place, held, knows=pending.batch - 1, checkpoint="its checkpoint")
    return held, decision


def _refuse_unfit(decision: Decision, held: Fence, place: Place, logged: Logged, log: str) -> None:
    if decision is Decision.AHEAD:
        raise fault(
            "STORE_AHEAD",
            store=place.name,
            batch=held.batch,
            known=logged.batches,
            checkpoint=log,
            forget=place.forget,
        )
    if decision is Decision.RESTORED:
        raise _restored(place, held, knows=logged.committed, checkpoint=log)


def _restored(place: Place, held: Fence, *, knows: int, checkpoint: str) -> MillstreamError:
    return fault(
        "STORE_RESTORED",
        store=place.name,
        held=held.batches,
        knows=knows,
        checkpoint=checkpoint,
        forget=place.forget,
    )
