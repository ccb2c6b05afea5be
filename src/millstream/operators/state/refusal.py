"""How a function with state can be wrong: declarations that do not fit together, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.errors import Location, MillstreamError

StatefulFault = Literal[
    "function",
    "key",
    "name",
    "reserved",
    "order",
    "length",
    "clocks",
    "processing_order",
    "initial",
    "initial_value",
]
_FAULTS: Mapping[StatefulFault, tuple[str, str]] = {
    "function": (
        "it is {got}, and not a function",
        "write def …(key, rows, state, timer), and call from there what you have",
    ),
    "key": ("it has no key", 'say by which columns rows belong together: key="user"'),
    "name": (
        "the column {got!r} is no name in Python",
        "use letters, digits and _ in state and emits",
    ),
    "reserved": ("a column of the state is called {got!r}", "give it another name"),
    "order": ("order={got!r} is not known", 'use order="event" or order="arrival"'),
    "length": (
        "{got}: not a length of time",
        'say timeout="event 30 minutes" or ttl="processing 1 day"; event is what is meant '
        "without a word",
    ),
    "clocks": (
        "timeout and ttl go by different clocks",
        "have both by event time, or both by processing time",
    ),
    "processing_order": (
        "its timers go by processing time, and its rows wait for the watermark",
        'say order="arrival", or let the timers go by event time',
    ),
    "initial": (
        "initial gives {got}",
        "give a function of the SparkSession that returns a DataFrame with the columns of the "
        "key and of the state",
    ),
    "initial_value": (
        "initial={got!r} is not a function",
        "give a function of the SparkSession that returns a DataFrame: initial=lambda spark: …",
    ),
}


def stateful_fault(
    function: str, which: StatefulFault, *, got: object = None, at: Location
) -> MillstreamError:
    """Refuse a function with state."""
    why, instead = _FAULTS[which]
    return fault(
        "STATEFUL_REFUSED", at=at, function=function, why=why.format(got=got), instead=instead
    )
