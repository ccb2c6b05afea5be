"""What a run of faults came to: data, to be kept as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tests.chaos.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fault, and what came of it."""

    fault: str
    kind: str
    struck: bool
    """Whether the driver came by the place of the fault; if not, it was killed after a while."""
    lasted_s: float
    recovery_s: float | None
    """From the fault to the next batch in any table; None if the next fault came before it.

    Where a driver has to be started anew, it counts from its start: as if that came at once.
    """
    broken: str
    """What a driver did that it must not do; empty if it behaved."""
    findings: Findings
    """What was wrong with the tables after this fault, counted from the first one on."""

    @property
    def is_good(self) -> bool:
        """Whether the driver behaved and the tables are right."""
        return not self.broken and self.findings.is_clean


@dataclass(frozen=True, slots=True)
class TrialReport:
    """All faults on one home."""

    app: str
    rows: int
    """Rows landed."""
    batches: int
    """Batches committed, in all tables."""
    outcomes: tuple[Outcome, ...]
    findings: Findings
    """What was wrong in the end, when all input was taken in."""
    broken: str = ""
    """Why the app could not take in what was left; empty if it could."""

    @property
    def misbehaved(self) -> int:
        """How often a driver did what it must not do."""
        return sum(bool(broken) for broken in (self.broken, *(o.broken for o in self.outcomes)))

    @property
    def is_good(self) -> bool:
        """Whether nothing was found and every driver behaved."""
        return self.findings.is_clean and not self.misbehaved


@dataclass(frozen=True, slots=True)
class Report:
    """All trials of one run."""

    seed: int
    date: str
    trials: tuple[TrialReport, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether every trial is."""
        return all(trial.is_good for trial in self.trials)

    @property
    def apps(self) -> tuple[str, ...]:
        """The apps, in the order in which they were tried."""
        return tuple(dict.fromkeys(trial.app for trial in self.trials))

    def of(self, app: str) -> tuple[TrialReport, ...]:
        """The trials of one app."""
        return tuple(trial for trial in self.trials if trial.app == app)

    def to_json(self) -> str:
        """Write it down."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Report:
        """Read what was written down."""
        kept = json.loads(text)
        return Report(kept["seed"], kept["date"], tuple(_trial(trial) for trial in kept["trials"]))


def recoveries(outcomes: Iterable[Outcome]) -> tuple[float, ...]:
    """Collect the times to recover, as far as they are known."""
    return tuple(o.recovery_s for o in outcomes if o.recovery_s is not None)


def percentile(values: Sequence[float], share: float) -> float | None:
    """Find the value that so many of a hundred do not exceed; None if there are none.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 50), percentile([4.0, 1.0], 99), percentile([], 50)
    (2.0, 4.0, None)
    """
    if not values:
        return None
    return sorted(values)[max(math.ceil(len(values) * share / 100) - 1, 0)]


def _trial(kept: dict[str, Any]) -> TrialReport:
    outcomes = tuple(
        Outcome(**{**outcome, "findings": _findings(outcome["findings"])})
        for outcome in kept["outcomes"]
    )
    return TrialReport(**{**kept, "outcomes": outcomes, "findings": _findings(kept["findings"])})


def _findings(kept: dict[str, Any]) -> Findings:
    return Findings(**{**kept, "remarks": tuple(kept["remarks"])})
