"""Named points of the commit path where a driver can be made to die, to prove that nothing is lost.

A test in the same process arms a home with a function that raises; a driver of its own process is
armed by its environment and is killed there, as by a power cut.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Act = Callable[[str, str, int], None]

POINTS = {
    "home_taken": "the home is locked under a new epoch; no table is opened yet",
    "table_taken": "the table carries the new epoch; its query has not started",
    "batch_planned": "the offsets of the batch are logged; nothing of it is written",
    "batch_staged": "the files of the batch are written; no table knows them",
    "offsets_durable": "the offsets of the batch are forced to disk; nothing is committed",
    "files_moved": "the files lie in the folder of the table; no commit names them",
    "quarantine_commit": "the quarantine has the batch; the table has not",
    "store_written": "a store has the rows in an open transaction; nothing of it is committed",
    "store_commit": "one store has the batch; those after it have not",
    "sink_commit": "the table has the batch; the commit log of Spark has not",
}
"""Every point, in the order a batch comes by them, and what is true there."""

DELIVERY_POINTS = {
    "alert_taken": "the rows of the outbox are noted for delivery; nobody was told",
    "alert_sent": "a destination has a notice; nothing in the home says so",
    "alert_told": "it is noted that a destination has a notice; others may not have it",
}
"""Those that the delivery of alerts comes by, after the batch."""

OF_STORES = ("store_written", "store_commit")
"""Those that only a query into stores comes by."""

VARIABLE = "MILLSTREAM_CRASH_AT"
"""Names where a driver is to die: `point`, `point:query` or `point:query:batch`."""

_armed: dict[Path, Act] = {}


def reach(point: str, home: Path, query: str, batch: int = -1) -> None:
    """Come by a point: nothing happens, unless somebody wants the driver to die here."""
    if act := _armed.get(home):
        act(point, query, batch)
    if place := os.environ.get(VARIABLE):
        _kill_at(place, point, query, batch)


@contextmanager
def armed(home: Path, act: Act) -> Iterator[None]:
    """Call a function whenever a driver of this process comes by a point of this home."""
    _armed[home] = act
    try:
        yield
    finally:
        del _armed[home]


def hold_to_points(point: str) -> None:
    """Refuse the name of a point that does not exist."""
    if point not in POINTS and point not in DELIVERY_POINTS:
        known = (*POINTS, *DELIVERY_POINTS)
        raise fault(
            "UNKNOWN_CRASH_POINT", point=point, nearest=closest(point, known), known=listed(known)
        )


def _kill_at(place: str, point: str, query: str, batch: int) -> None:
    wanted = place.split(":")
    hold_to_points(wanted[0])
    if wanted == [point, query, str(batch)][: len(wanted)]:
        os.kill(os.getpid(), signal.SIGKILL)
