"""Functions of an app that are called when something happens to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.errors import Location

REACTION_KINDS = (
    "query_failed",
    "restarting",
    "expectation_failed",
    "stale",
    "behind",
    "failed_rows",
    "recovered",
    "schema_changed",
    "run_started",
    "driver_died",
    "file_set_aside",
    "alert_dead",
)
"""The events that a function can be called with."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """A function, and the events that it is called with."""

    kinds: tuple[str, ...]
    act: Callable[[Any], object] = field(compare=False, repr=False)
    at: Location
