"""Things that happen to a run, as its watchers are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from millstream.errors import MillstreamError

Kind = Literal[
    "started",
    "finished",
    "restarting",
    "failed",
    "stale",
    "differs",
    "file_changed",
    "receiver_failed",
    "alert_waits",
    "alert_dead",
    "renewed",
    "not_renewed",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one query."""

    kind: Kind
    query: str
    detail: str = ""
    error: MillstreamError | None = None
