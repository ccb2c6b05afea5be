"""Watches expectations: an event when rows begin to break rules."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.observe.record import EventRecord

if TYPE_CHECKING:
    from datetime import datetime

    from millstream.observe.record import BatchRecord

_RULE = "rule: "
_QUIET = timedelta(minutes=1)
"""So long no row must have broken a rule before the next that does is an event again."""


class ExpectationWatch:
    """Which datasets have rows that break rules."""

    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}

    def event_of(self, record: BatchRecord) -> EventRecord | None:
        """Return the event that a batch is; None if it keeps all rules or others broke them too."""
        broken = {
            f"{name.removeprefix(_RULE)!r}": rows
            for name, rows in record.counts.items()
            if rows and name.startswith(_RULE)
        }
        if rejected := record.counts.get("rejected"):
            broken["its rules"] = rejected
        if not broken:
            return None
        before = self._last.get(record.dataset)
        self._last[record.dataset] = record.at
        if before is not None and record.at - before < _QUIET:
            return None
        rules = " and ".join(f"{name} ({rows})" for name, rows in broken.items())
        detail = f"in batch {record.batch}, rows broke {rules}"
        return EventRecord(record.at, "expectation_failed", record.dataset, detail, record.run)
