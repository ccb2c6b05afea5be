"""The protocol that all stores keep: who may write, which batch is next, and what is a replay.

Beside its rows a store keeps one fence for each place that is written. A driver takes the fence
when it opens the place; a batch and the fence change in one transaction, or not at all.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError, fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Fence:
    """What a store knows of one place: who writes it, and how far they got."""

    writer: str
    """The app and its dataset."""
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


@dataclass(frozen=True, slots=True)
class Turn:
    """A batch that asks to be let in."""

    checkpoint: str
    batch: int
    digest: str


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
        return Fence(driver.writer, driver.epoch, driver.owner)
    if held.writer != driver.writer:
        raise fault(
            "STORE_TAKEN",
            store=place.name,
            by=held.writer,
            writer=driver.writer,
            forget=place.forget,
        )
    same_line = held.batch >= 0 and held.checkpoint == driver.checkpoint
    if same_line and held.epoch > driver.epoch:
        raise fault("OVERTAKEN", theirs=held.epoch, mine=driver.epoch, table=place.name)
    hold_to_checkpoint(
        held,
        place,
        query_id=driver.checkpoint,
        committed=driver.committed,
        planned=held.batch if driver.planned is None else driver.planned(),
        checkpoint=driver.log,
    )
    return replace(held, epoch=driver.epoch, owner=driver.owner)


def hold_to_checkpoint(
    held: Fence, place: Place, *, query_id: str, committed: int, planned: int, checkpoint: str
) -> None:
    """Make sure that a store and the checkpoint of its query tell the same story.

    Args:
        held: What the store says.
        place: Where.
        query_id: The id in the checkpoint.
        committed: The last batch the checkpoint has committed.
        planned: The last batch it has planned.
        checkpoint: Its folder.

    Raises:
        StoreRestoredError: The store lacks batches.
        StoreAheadError: The store has batches of another checkpoint.
    """
    other = held.batch >= 0 and held.checkpoint != query_id
    if other or held.batch > planned:
        raise fault(
            "STORE_AHEAD",
            store=place.name,
            batch=held.batch,
            known="none" if planned < 0 else f"batches up to {planned}",
            checkpoint=checkpoint,
            forget=place.forget,
        )
    if held.batch < committed:
        raise restored_fault(place, batch=held.batch, knows=committed, checkpoint=checkpoint)


def restored_fault(
    place: Place, *, batch: int, knows: int, checkpoint: str = "its checkpoint"
) -> MillstreamError:
    """Say that a store lacks batches which the checkpoint has committed."""
    return fault(
        "STORE_RESTORED",
        store=place.name,
        held="no batch" if batch < 0 else f"batches up to {batch}",
        knows=knows,
        checkpoint=checkpoint,
        forget=place.forget,
    )


def lets_in(held: Fence | None, driver: Driver, turn: Turn, place: Place) -> bool:
    """Decide inside the store's transaction whether a batch is to be written, or is there already.

    Raises:
        OvertakenError: Another driver took the place; nothing may be written.
        StoreRestoredError: The batch before this one is not there any more.
    """
    if held is not None and (held.owner, held.epoch) != (driver.owner, driver.epoch):
        raise fault("OVERTAKEN", theirs=held.epoch, mine=driver.epoch, table=place.name)
    batch = -1 if held is None else held.batch
    if held is None or batch < turn.batch - 1:
        raise restored_fault(place, batch=batch, knows=turn.batch - 1)
    return batch < turn.batch


def passed(held: Fence, turn: Turn, note: str) -> Fence:
    """Say what the fence is once a batch is written."""
    return replace(
        held, checkpoint=turn.checkpoint, batch=turn.batch, digest=turn.digest, note=note
    )
