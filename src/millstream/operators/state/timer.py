"""Timers of one key: when the function is called again, though no row comes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.model.duration import UNIX_EPOCH

if TYPE_CHECKING:
    from millstream.errors import Location

_US = timedelta(microseconds=1)


def moment(us: float) -> datetime:
    """Return a time as a datetime.

    >>> moment(60_000_000).isoformat()
    '1970-01-01T00:01:00+00:00'
    """
    return UNIX_EPOCH + timedelta(microseconds=us)


def microseconds(at: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (at - UNIX_EPOCH) // _US


@dataclass(frozen=True, slots=True)
class Owner:
    """The function that the timers belong to, and whether they have a clock."""

    function: str
    at: Location
    refused: str = ""
    """Why no timer can be set; empty if it can."""


class Timer:
    """What time it is for a key, and its timers."""

    __slots__ = ("_now_us", "_owner", "_us", "fired")

    def __init__(self, us: dict[str, int], now_us: int, fired: str | None, owner: Owner) -> None:
        self._us, self._now_us, self.fired, self._owner = us, now_us, fired, owner

    fired: str | None
    """The timer for which the function is called; None if it is called for rows."""

    @property
    def now(self) -> datetime:
        """The event time of the rows or of the timer; the time of the batch if timers go by it."""
        return moment(self._now_us)

    def at(self, name: str) -> datetime | None:
        """When a timer is set to; None if it is not set."""
        return moment(self._us[name]) if name in self._us else None

    def set(self, name: str, at: datetime) -> None:
        """Have the function called when all rows up to a time are there; in place of an earlier.

        A time that has passed already counts as now.

        Raises:
            TIMER_REFUSED: It is no time with a time zone; or the call is for a timer, and the
                time not after it.
        """
        if self._owner.refused or not name:
            self._refuse(name, self._owner.refused or "a timer has a name")
        if not isinstance(at, datetime) or at.tzinfo is None:
            self._refuse(name, f"{at!r} is no time with a time zone")
        us = microseconds(at)
        if self.fired is not None and us <= self._now_us:
            self._refuse(name, f"{at.isoformat()} is not after {self.now.isoformat()}, for ever")
        self._us[name] = max(us, self._now_us)

    def cancel(self, name: str) -> None:
        """Set a timer no longer; nothing happens if it is not set."""
        if name:
            self._us.pop(name, None)

    def _refuse(self, name: str, why: str) -> None:
        raise fault(
            "TIMER_REFUSED", at=self._owner.at, function=self._owner.function, timer=name, why=why
        )
