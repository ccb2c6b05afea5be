"""Frontiers: up to which event time a table is complete, and how they combine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from millstream.model.duration import UNIX_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Published = Callable[[int], "Publication"]
    """Returns what is known of time after a batch."""

NOTHING_YET = -(2**62)
"""The frontier of a table of which nothing is complete."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What a batch publishes about time, in microseconds, as Facts have it."""

    frontier: int | None = None
    event_time: str | None = None
    delay: int | None = None


def nothing_known(batch: int) -> Publication:
    """Return that nothing is known of time after a batch."""
    del batch
    return Publication()


def least(frontiers: Iterable[int | None]) -> int | None:
    """Return the frontier of what is made from several tables; None if one of theirs is.

    >>> least([3, 2]), least([3, None]), least([])
    (2, None, None)
    """
    all_of_them = list(frontiers)
    known = [frontier for frontier in all_of_them if frontier is not None]
    return min(known) if known and len(known) == len(all_of_them) else None


def latest(before: int | None, now: int | None) -> int | None:
    """Give the frontier after one more batch: what was complete stays complete.

    >>> latest(3, 2), latest(3, None), latest(NOTHING_YET, None)
    (3, 3, None)
    """
    if now is None:
        return before if before != NOTHING_YET else None
    return now if before is None else max(before, now)


def watermark_ms(frontier: int) -> int:
    """Give Spark's watermark for rows that are complete to a frontier.

    Spark drops a row exactly at the watermark in some operators; landing accepts it.

    >>> watermark_ms(60_000_000), watermark_ms(60_000_999)
    (59999, 59999)
    """
    return frontier // 1000 - 1


def frontier_to_reach(moment: int) -> int:
    """Give the least frontier at which Spark's watermark is at a moment or later.

    >>> frontier_to_reach(60_000_000), watermark_ms(60_001_000)
    (60001000, 60000)
    """
    return (-(-moment // 1000) + 1) * 1000


def frontier_of(moment: datetime) -> int:
    """Write a moment as frontiers are: in microseconds since 1970."""
    return (moment - UNIX_EPOCH) // timedelta(microseconds=1)


def moment(frontier: int | None) -> datetime | None:
    """Say when a frontier is, if anything is complete.

    >>> moment(60_000_000).isoformat(), moment(NOTHING_YET)
    ('1970-01-01T00:01:00+00:00', None)
    """
    if frontier is None or frontier == NOTHING_YET:
        return None
    return UNIX_EPOCH + timedelta(microseconds=frontier)
