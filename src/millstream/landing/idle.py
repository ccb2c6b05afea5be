"""Idle sources: how the clock moves the watermark of a source without new rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from millstream.model.dataset import Source

_STEPS = 4


@dataclass(frozen=True, slots=True)
class Idle:
    """How long a source may be quiet until the clock moves its watermark; in microseconds."""

    after: int
    delay: int
    """The delay of the watermark."""

    @staticmethod
    def of(source: Source) -> Idle | None:
        """Return what a source declares; None if nothing."""
        if source.idle is None or source.watermark is None:
            return None
        return Idle(in_microseconds(source.idle), in_microseconds(source.watermark))

    @property
    def step(self) -> int:
        """How often the watermark moves, once the clock moves it."""
        return max(self.after // _STEPS, 1)

    def reached(self, quiet_since: int, now: int) -> int | None:
        """Return where the watermark is now; None while the source is not idle.

        It is where it would be if a row had come, and happened, as long ago as `after`.

        >>> minute = 60_000_000
        >>> idle = Idle(after=10 * minute, delay=minute)
        >>> idle.reached(0, now=10 * minute - 1), idle.reached(0, now=10 * minute) == -minute
        (None, True)
        """
        return now - self.after - self.delay if now - quiet_since >= self.after else None


def in_microseconds(duration: str) -> int:
    """Read a length of time as users write it."""
    return round(parse_duration(duration) / timedelta(microseconds=1))
