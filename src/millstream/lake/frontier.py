"""Frontiers: up to which event time a table is complete, and how they combine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING_YET = -(2**62)
"""The frontier of a table of which nothing is complete."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Publication:
    """What a batch tells of time, in microseconds, as Facts have it."""

    frontier: int | None = None
    event_time: str | None = None
    delay: int | None = None


def least(frontiers: Iterable[int | None]) -> int | None:
    """Give the frontier of what is made from several tables; unknown if one of theirs is.

    >>> least([3, 2]), least([3, None]), least([])
    (2, None, None)
    """
    told = list(frontiers)
    known = [frontier for frontier in told if frontier is not None]
    return min(known) if known and len(known) == len(told) else None


def latest(before: int | None, now: int | None) -> int | None:
    """Give the frontier after one more batch: what was complete stays complete.

    >>> latest(3, 2), latest(3, None), latest(NOTHING_YET, None)
    (3, 3, None)
    """
    if now is None:
        return before if before != NOTHING_YET else None
    return now if before is None else max(before, now)


def moment(frontier: int | None) -> datetime | None:
    """Say when a frontier is, if anything is complete.

    >>> moment(60_000_000).isoformat(), moment(NOTHING_YET)
    ('1970-01-01T00:01:00+00:00', None)
    """
    if frontier is None or frontier == NOTHING_YET:
        return None
    return _EPOCH + timedelta(microseconds=frontier)
