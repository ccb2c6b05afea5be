"""Events of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from millstream.errors import MillstreamError

Kind = Literal[
    "started",
    "finished",
    "restarting",
    "query_failed",
    "stale",
    "differs",
    "file_changed",
    "file_set_aside",
    "receiver_failed",
    "alert_waits",
    "alert_dead",
    "renewed",
    "not_renewed",
    "run_failed",
    "taken_over",
    "maintained",
    "maintenance_failed",
    "reaction_failed",
    "export_failed",
    "history_set_aside",
    "history_stopped",
    "history_resumed",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one query, or to the whole app if no query is named."""

    kind: Kind
    query: str
    detail: str = ""
    error: MillstreamError | None = None
