"""Events of objectives, as they are sent to the destinations of an app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.observe.record import EventRecord

OBJECTIVES = "__objectives"
"""The name that deliveries of objectives have in place of an alert's."""

OBJECTIVES_KEY = ("dataset", "objective")
"""What such a delivery is about."""


def objective_row(record: EventRecord) -> dict[str, Any]:
    """Return what is sent: one row for each change, which no other equals."""
    return {
        "dataset": record.dataset,
        "objective": record.code,
        "state": record.kind,
        "detail": record.detail,
        "at": record.at,
    }
