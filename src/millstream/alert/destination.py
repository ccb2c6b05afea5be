"""What destinations have in common: how they fail, and their names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, count
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.errors import Location, MillstreamError
    from millstream.model.destination import Destination

_MARKED = 16
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0
_LONGEST_ASKED_S = 3600.0


class NotSentError(Exception):
    """A destination did not receive a notice, or may not have."""

    def __init__(self, reason: str, *, again: bool = True, after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.again = again
        """Whether trying again may succeed."""
        self.after = after
        """How long the destination asks to wait."""


@dataclass(frozen=True, slots=True)
class Known:
    """A destination that an alert is sent to, or once was."""

    name: str
    mark: str
    is_gone: bool = False


def mark_of(destination: Destination) -> str:
    """Return what identifies a destination: its kind, and a hash that does not reveal its address.

    One without `identified_by` is identified by its kind and its place among those.
    """
    where: tuple[str, ...] = getattr(destination, "identified_by", ())
    return f"{_kind(destination)} {hashlib.sha256(repr(where).encode()).hexdigest()[:_MARKED]}"


def names_of(marks: Sequence[str], known: Sequence[Known] = ()) -> list[str]:
    """Name destinations by their kind, and by a number from the second of a kind on.

    One that was known keeps its name, wherever it is on the list. Of the others each takes the name
    of one of its kind that is not on the list any more: an address may be mended, and what waits
    goes to the new one. Names of those that are gone for longer are not used again.

    >>> names_of(["webhook a", "webhook b", "log c"])
    ['webhook', 'webhook 2', 'log']
    >>> known = [Known("webhook", "webhook a"), Known("webhook 2", "webhook b")]
    >>> names_of(["webhook b"], known), names_of(["webhook c", "webhook b"], known)
    (['webhook 2'], ['webhook', 'webhook 2'])
    """
    free = sorted(known, key=lambda each: (each.is_gone, len(each.name), each.name))
    names: dict[int, str] = {}
    for index, mark in enumerate(marks):
        same = next((each for each in free if each.mark == mark), None)
        if same is not None:
            free.remove(same)
            names[index] = same.name
    left = [each.name for each in free if not each.is_gone]
    met = {each.name for each in known}
    for index, mark in enumerate(marks):
        if index not in names:
            names[index] = _name_of(mark.partition(" ")[0], left, met)
    return [names[index] for index in range(len(marks))]


def _name_of(kind: str, left: list[str], met: set[str]) -> str:
    """Take a name that is left over, or make one that was never used."""
    name = next((name for name in left if name.partition(" ")[0] == kind), None)
    if name is not None:
        left.remove(name)
        return name
    numbered = (f"{kind} {number}" for number in count(2))
    name = next(name for name in chain([kind], numbered) if name not in met)
    met.add(name)
    return name


def _kind(destination: Destination) -> str:
    return type(destination).__name__.lower()


def timeout_faults(timeout: str, alert: str, at: Location) -> Iterator[MillstreamError]:
    """A timeout that is no length of time, or none at all."""
    try:
        is_time = parse_duration(timeout) > timedelta()
    except ValueError:
        is_time = False
    if not is_time:
        expected = 'a length of time such as "10 seconds"'
        yield fault(
            "DESTINATION_REFUSED",
            at=at,
            alert=alert,
            option="timeout",
            got=timeout,
            expected=expected,
        )


def pause_s(attempts: int, id_: str, asked: timedelta | None = None) -> float:
    """Return how long to wait after so many attempts: twice as long each time, with jitter.

    >>> [round(pause_s(n, "80")) for n in (1, 2, 3, 20)]
    [1, 2, 3, 225]
    """
    if asked is not None:
        return min(max(asked.total_seconds(), _FIRST_PAUSE_S), _LONGEST_ASKED_S)
    longest = min(_FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 20), _LONGEST_PAUSE_S)
    return longest * (0.5 + int(id_[:2], 16) / 512)
