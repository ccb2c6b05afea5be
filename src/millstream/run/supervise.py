"""Supervision: a transient failure restarts one query after a pause, a permanent one stops it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from millstream.observe.collector import ReportedQuery

if TYPE_CHECKING:
    from millstream.errors import MillstreamError
    from millstream.lake.log import Facts
    from millstream.model.trigger import Trigger
    from millstream.plan import Query

State = Literal["waiting", "running", "restarting", "failed", "finished", "stopped"]

OUTAGES = ("STORAGE_FULL", "BROKER_UNREACHABLE", "BROKER_LOST", "STORE_UNREACHABLE")
"""Faults of the surroundings that pass by themselves: tried again for as long as it takes."""


@dataclass(frozen=True, slots=True)
class Restart:
    """How often, and after what pauses, a failed query is tried again."""

    attempts: int = 5
    """Failures in a row without a batch in between, before the query stops for good."""
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0

    def pause_s(self, failures: int) -> float:
        """How long to wait after so many failures in a row.

        >>> [Restart().pause_s(n) for n in (1, 2, 3, 10)]
        [1.0, 2.0, 4.0, 60.0]
        """
        return float(min(self.first_pause_s * 2.0 ** (failures - 1), self.longest_pause_s))


DEFAULT = Restart()
NEVER = Restart(attempts=0)


class Running(ReportedQuery, Protocol):
    """Something that runs: a stream or a recomputed table."""

    @property
    def facts(self) -> Facts:
        """What its table holds."""
        ...

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """What it died of, if it did."""
        ...

    @property
    def progress(self) -> dict[str, Any] | None:
        """What Spark reported on the last batch."""
        ...

    def start(self, trigger: Trigger) -> None:
        """Start, or start again."""
        ...

    def drain(self) -> None:
        """Process all that is there now, then return."""
        ...

    def ask_to_stop(self) -> None:
        """Begin no further batch."""
        ...

    def stop(self) -> None:
        """Let the running batch finish, then stop."""
        ...


@dataclass(slots=True)
class Supervised:
    """A query, what became of it, and when to try again."""

    query: Query
    running: Running
    trigger: Trigger
    state: State = "waiting"
    is_stale: bool = False
    """Whether something it reads has stopped for good."""
    error: MillstreamError | None = None
    failures: int = 0
    retry_at: float = 0.0
    batch_at_failure: int = field(default=-2)

    @property
    def is_over(self) -> bool:
        """Whether it will do nothing more."""
        return self.state in ("failed", "finished", "stopped")

    @property
    def trouble(self) -> Literal["failed", "restarting", "stale"] | None:
        """Why its table is not up to date; None if it is, or will be with the next batch."""
        if self.state == "failed":
            return "failed"
        if self.error is not None and not self.has_recovered:
            return "restarting"
        return "stale" if self.is_stale else None

    @property
    def has_recovered(self) -> bool:
        """Whether it has got past what it failed at.

        An outage is over as soon as Spark has looked for rows; for anything else it takes a
        committed batch.
        """
        is_outage = self.error is not None and self.error.code in OUTAGES
        has_passed = self.state != "restarting" and is_outage
        has_looked = self.state == "finished" or self.running.progress is not None
        return (has_passed and has_looked) or self.running.facts.batch > self.batch_at_failure

    def begin(self) -> None:
        """Record that it runs."""
        self.state = "running"

    def stop(self) -> None:
        """Record that it was stopped, unless it had ended before."""
        if not self.is_over:
            self.state = "stopped"

    def give_up(self) -> None:
        """Record that it has failed, and is not tried again."""
        self.state = "failed"

    def become_stale(self) -> bool:
        """Record that something it reads has stopped for good; return whether that is new."""
        is_new, self.is_stale = not self.is_stale, True
        return is_new

    def finish(self) -> bool:
        """Record that it has ended by itself; return whether it ended well."""
        self.state = "finished"
        return self.error is None or self.has_recovered

    def fail(self, error: MillstreamError, restart: Restart) -> bool:
        """Record a failure; return whether to try again."""
        self.error = error
        batch = self.running.facts.batch
        self.failures = 1 if batch > self.batch_at_failure else self.failures + 1
        self.batch_at_failure = batch
        outage = error.code in OUTAGES and restart.attempts > 0
        if not outage and (not error.transient or self.failures > restart.attempts):
            self.state = "failed"
            return False
        self.state = "restarting"
        self.retry_at = time.monotonic() + restart.pause_s(self.failures)
        return True
