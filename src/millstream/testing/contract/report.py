"""What a source or sink survives, and hence what it may promise."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import fault

EXACTLY_ONCE = "exactly once"
AT_LEAST_ONCE = "at least once"
NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried."""

    name: str
    loses: bool
    """Whether rows were missing that had been written."""
    repeats: bool
    """Whether anything was there that should not have been: twice, torn, stale or mixed."""
    found: str

    @property
    def is_passed(self) -> bool:
        """Whether the store held just what it should."""
        return not (self.loses or self.repeats)

    def __str__(self) -> str:
        return f"{'✓' if self.is_passed else '✗'} {self.name}: {self.found}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was tried."""

    trials: tuple[Trial, ...]

    @property
    def guarantee(self) -> str:
        """What may be promised: exactly once, at least once, or nothing."""
        if any(trial.loses for trial in self.trials):
            return NOTHING
        return AT_LEAST_ONCE if any(trial.repeats for trial in self.trials) else EXACTLY_ONCE

    def assert_guarantee(self, wanted: str = EXACTLY_ONCE) -> None:
        """Raise unless as much may be promised.

        Raises:
            CONTRACT_BROKEN: It may not; every failed trial is named.
        """
        order = (NOTHING, AT_LEAST_ONCE, EXACTLY_ONCE)
        if order.index(self.guarantee) < order.index(wanted):
            broken = [str(trial) for trial in self.trials if not trial.is_passed]
            raise fault(
                "CONTRACT_BROKEN", wanted=wanted, found=self.guarantee, broken="\n  ".join(broken)
            )

    def __str__(self) -> str:
        return "\n".join((*map(str, self.trials), f"may promise: {self.guarantee}"))
