"""What destinations have in common: how they fail, and what they are called."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.errors import DestinationRefusedError
from millstream.model.destination import Destination
from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.errors import Location, MillstreamError
    from millstream.model.destination import Courier, Topic

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0
_LONGEST_ASKED_S = 3600.0


class NotToldError(Exception):
    """A destination was not told, or may not have been."""

    def __init__(self, reason: str, *, again: bool = True, after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.again = again
        """Whether trying again may succeed."""
        self.after = after
        """How long the destination asks to be left alone."""


def names_of(destinations: Sequence[Destination | Topic]) -> list[str]:
    """Name destinations by their kind, and by a number from the second of a kind on.

    An address may be mended, and what waits goes to the new one.
    """
    met = Counter[str]()
    names = []
    for destination in destinations:
        kind = type(destination).__name__.lower()
        met[kind] += 1
        names.append(kind if met[kind] == 1 else f"{kind} {met[kind]}")
    return names


def timeout_faults(timeout: str, alert: str, at: Location) -> Iterator[MillstreamError]:
    """A timeout that is no length of time, or none at all."""
    try:
        is_time = parse_duration(timeout) > timedelta()
    except ValueError:
        is_time = False
    if not is_time:
        expected = 'a length of time such as "10 seconds"'
        yield DestinationRefusedError("timeout", timeout, alert=alert, expected=expected, at=at)


def open_courier(destination: Destination | Topic, place: Path) -> Courier:
    """Open the way to a destination."""
    if isinstance(destination, Destination):
        return destination.courier(place)
    from millstream.alert.kafka import TopicCourier

    return TopicCourier(destination)


def pause_s(attempts: int, id_: str, asked: timedelta | None = None) -> float:
    """Say how long to wait after so many attempts: twice as long each time, and not all at once.

    >>> [round(pause_s(n, "80")) for n in (1, 2, 3, 20)]
    [1, 2, 3, 225]
    """
    if asked is not None:
        return min(max(asked.total_seconds(), _FIRST_PAUSE_S), _LONGEST_ASKED_S)
    longest = min(_FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 20), _LONGEST_PAUSE_S)
    return longest * (0.5 + int(id_[:2], 16) / 512)
