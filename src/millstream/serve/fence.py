"""The fence of a store: the drivers that come to it, and how those are refused that may not."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError, fault
from millstream.lake.fence import Claim, Decision, Logged, on_batch, on_start, on_take

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.lake.fence import Fence, Turn


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
    """Reads the last batch that it has planned, after: the driver before may still be at work."""
    log: str = "its checkpoint"
    """The folder of the checkpoint, as errors name it."""

    @property
    def claim(self) -> Claim:
        """How it makes itself known."""
        return Claim(self.writer, self.epoch, self.owner)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a store, as errors name it."""

    name: str
    forget: str
    """What to run in the store to have it forget what was written, rows and fence."""


def taken(held: Fence | None, driver: Driver, place: Place) -> Fence:
    """Say what the fence is once a driver has taken it.

    Whoever is to be refused is refused here, where nothing is changed: it must not shut out the
    driver that is at work.

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
    match on_take(held, driver.claim, logged):
        case Decision.FOREIGN:
            raise fault(
                "STORE_TAKEN",
                store=place.name,
                by=held.writer,
                writer=driver.writer,
                forget=place.forget,
            )
        case Decision.OVERTAKEN:
            raise fault("OVERTAKEN", theirs=held.epoch, mine=driver.epoch, table=place.name)
        case decision:
            _refuse_unfit(decision, held.batch, place, logged, driver.log)
    return held.with_driver(driver.claim)


def hold_to_checkpoint(held: Fence, place: Place, logged: Logged, log: str) -> None:
    """Make sure that a store and the checkpoint of its query tell the same story.

    Args:
        held: What the store says.
        place: Where.
        logged: What the checkpoint says.
        log: Its folder.

    Raises:
        StoreRestoredError: The store lacks batches.
        StoreAheadError: The store has batches of another checkpoint.
    """
    _refuse_unfit(on_start(held, logged), held.batch, place, logged, log)


def admitted(
    held: Fence | None, driver: Driver, turn: Turn, place: Place
) -> tuple[Fence, Decision]:
    """Decide inside the store's transaction whether a batch is to be written, or is there already.

    Raises:
        OvertakenError: Another driver took the place; nothing may be written.
        StoreRestoredError: The batch before this one is not there any more.
    """
    decision = on_batch(held, driver.claim, turn)
    if held is not None and decision is Decision.OVERTAKEN:
        raise fault("OVERTAKEN", theirs=held.epoch, mine=driver.epoch, table=place.name)
    if held is None or decision is Decision.RESTORED:
        batch = -1 if held is None else held.batch
        raise _restored(place, batch, knows=turn.batch - 1, checkpoint="its checkpoint")
    return held, decision


def _refuse_unfit(decision: Decision, batch: int, place: Place, logged: Logged, log: str) -> None:
    if decision is Decision.AHEAD:
        raise fault(
            "STORE_AHEAD",
            store=place.name,
            batch=batch,
            known="none" if logged.planned < 0 else f"batches up to {logged.planned}",
            checkpoint=log,
            forget=place.forget,
        )
    if decision is Decision.RESTORED:
        raise _restored(place, batch, knows=logged.committed, checkpoint=log)


def _restored(place: Place, batch: int, *, knows: int, checkpoint: str) -> MillstreamError:
    return fault(
        "STORE_RESTORED",
        store=place.name,
        held="no batch" if batch < 0 else f"batches up to {batch}",
        knows=knows,
        checkpoint=checkpoint,
        forget=place.forget,
    )
