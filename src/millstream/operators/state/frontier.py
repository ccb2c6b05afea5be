"""How far rows are taken to be complete in a batch: to their end, or to a stream's watermark."""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FRONTIER: ContextVar[float] = ContextVar("frontier", default=math.inf)
_BEHIND: ContextVar[list[int] | None] = ContextVar("behind", default=None)


def frontier_us() -> float:
    """Say up to which event time a batch that is built now has all rows, in microseconds."""
    return _FRONTIER.get()


def of_watermark(watermark_ms: int) -> float:
    """Say up to which event time rows are complete; at 0 there is no watermark yet."""
    return watermark_ms * 1000 if watermark_ms > 0 else -math.inf


def fall_behind(us: int) -> None:
    """Tell that an operator gives rows which are so much older than the frontier."""
    if (told := _BEHIND.get()) is not None:
        told.append(us)


def behind_us() -> int:
    """Say by how much the rows of operators that were called are older than the frontier."""
    return max(_BEHIND.get() or (), default=0)


@contextmanager
def complete_to(watermark_ms: int) -> Iterator[list[int]]:
    """Build batch answers as a stream gives them whose watermark is at this time.

    What operators tell of how far they fall behind it is in the list that is given.
    """
    behind: list[int] = []
    tokens = _FRONTIER.set(of_watermark(watermark_ms)), _BEHIND.set(behind)
    try:
        yield behind
    finally:
        _FRONTIER.reset(tokens[0])
        _BEHIND.reset(tokens[1])
