"""Named points of the commit path where a test can kill a driver, to prove that nothing is lost.

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
"""Every point, in the order in which a batch reaches them, and what is true there."""

DELIVERY_POINTS = {
    "alert_taken": "the rows of the outbox are noted for delivery; nothing is sent",
    "alert_begun": "the fence is checked; a notice is about to be sent",
    "alert_sent": "a destination has a notice; nothing in the home says so",
    "alert_told": "it is noted that a destination has a notice; others may not have it",
}
"""Points that the delivery of alerts reaches, after the batch."""

MAINTENANCE_POINTS = {
    "files_rewritten": "compacted files lie in the folder of the table; no commit names them",
    "rewrite_commit": "the table has the compacted files; those that they replace are still there",
    "history_closed": "no reader can begin at an old version; nothing of it is deleted",
    "old_files_deleted": "the files of old versions are deleted; commits still name them",
}
"""Points that maintenance reaches, beside the batches."""

VECTOR_POINTS = {
    "vectors_enabled": "rows of the table are deleted where they are; no batch has done it yet",
    "deletions_written": "the deletions of the batch are written to a file; no commit names it",
}
"""Points of update tables whose rows are deleted where they are."""

PROGRAM_POINTS = {
    "tick_planned": "the journal of a functional program has the batch; nothing of it has run",
    "state_staged": "all buckets of a state are written; the version does not have its name",
    "state_kept": "a version of a state has its name; no output of its batch has run",
    "output_run": "an output of the batch has run; those after it have not",
}
"""Points that a functional program reaches."""

OF_STORES = ("store_written", "store_commit")
"""Points that only a query into stores reaches."""

VARIABLE = "MILLSTREAM_CRASH_AT"
"""Names where a driver is to die: `point`, `point:query` or `point:query:batch`."""

_armed: dict[Path, Act] = {}


def reach(point: str, home: Path, query: str, batch: int = -1) -> None:
    """Mark that a point is reached; kills the driver if a test has armed this point."""
    if act := _armed.get(home):
        act(point, query, batch)
    if place := os.environ.get(VARIABLE):
        _kill_at(place, point, query, batch)


@contextmanager
def armed(home: Path, act: Act) -> Iterator[None]:
    """Call a function whenever a driver of this process reaches a point of this home."""
    _armed[home] = act
    try:
        yield
    finally:
        del _armed[home]


def check_point(point: str) -> None:
    """Refuse the name of a point that does not exist."""
    known = (*POINTS, *DELIVERY_POINTS, *MAINTENANCE_POINTS, *VECTOR_POINTS, *PROGRAM_POINTS)
    if point not in known:
        raise fault(
            "UNKNOWN_CRASH_POINT", point=point, nearest=closest(point, known), known=listed(known)
        )


def _kill_at(place: str, point: str, query: str, batch: int) -> None:
    wanted = place.split(":")
    check_point(wanted[0])
    if wanted == [point, query, str(batch)][: len(wanted)]:
        os.kill(os.getpid(), signal.SIGKILL)
