"""How far rows are taken to be complete in a batch: to their end, or to a stream's watermark."""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FRONTIER: ContextVar[float] = ContextVar("frontier", default=math.inf)


def frontier_us() -> float:
    """Say up to which event time a batch that is built now has all rows, in microseconds."""
    return _FRONTIER.get()


def of_watermark(watermark_ms: int) -> float:
    """Say up to which event time rows are complete; at 0 there is no watermark yet."""
    return watermark_ms * 1000 if watermark_ms > 0 else -math.inf


@contextmanager
def complete_to(watermark_ms: int) -> Iterator[None]:
    """Build batch answers as a stream gives them whose watermark is at this time."""
    token = _FRONTIER.set(of_watermark(watermark_ms))
    try:
        yield
    finally:
        _FRONTIER.reset(token)
