"""What maintenance did to each table, as events."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.lake.compaction import Compacted
from millstream.lake.retention import Deleted
from millstream.observe import Event

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY_S = 600.0


@dataclass(frozen=True, slots=True)
class Done:
    """What one step did."""

    compacted: Compacted = field(default_factory=Compacted)
    deleted: Deleted = field(default_factory=Deleted)
    rows_dropped: int = 0

    def plus(self, other: Done) -> Done:
        """Add up."""
        files = self.deleted.files + other.deleted.files
        deleted = Deleted(files, self.deleted.size + other.deleted.size)
        rows = self.rows_dropped + other.rows_dropped
        return Done(self.compacted.plus(other.compacted), deleted, rows)

    def __str__(self) -> str:
        before, files = self.compacted.before, self.deleted.files
        parts = (
            f"{before:,} files into {self.compacted.after:,}" if before else "",
            f"{files:,} files deleted, {self.deleted.size / 1e6:,.1f} MB" if files else "",
            f"{self.rows_dropped:,} rows dropped" if self.rows_dropped else "",
        )
        return "; ".join(filter(None, parts))


class UpkeepReports:
    """Reports what was done to each table, now and then: tables are maintained all the time."""

    def __init__(self, report: Callable[[Event], None]) -> None:
        self._report = report
        self._unreported: dict[str, Done] = {}
        self._next: dict[str, float] = {}

    def add(self, name: str, done: Done) -> None:
        """Add what a step did."""
        done = self._unreported.get(name, Done()).plus(done)
        self._unreported[name] = done
        if str(done) and time.monotonic() >= self._next.get(name, 0.0):
            self._next[name] = time.monotonic() + _EVERY_S
            self._report(Event("maintained", name, str(self._unreported.pop(name))))

    def fail(self, name: str, why: str) -> None:
        """Report that a table cannot be maintained."""
        self._report(Event("maintenance_failed", name, why))
