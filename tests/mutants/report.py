"""What became of planted faults: a file to go on from, and a table for people."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from tests.document import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.mutants.fault import Fault


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one fault."""

    file: str
    old: str
    new: str
    noticed_by: str
    """The test that failed first; empty if none did."""
    seconds: float

    def is_of(self, fault: Fault) -> bool:
        """Return whether the fault is still the one that was planted."""
        return (self.file, self.old, self.new) == (fault.file, fault.old, fault.new)


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes, by room and fault."""

    date: str
    outcomes: Mapping[str, Outcome]

    @staticmethod
    def read(path: Path) -> Report:
        """Read what an earlier run has written; nothing if there was none."""
        if not path.exists():
            return Report("", {})
        found = json.loads(path.read_text())
        return Report(found["date"], {k: Outcome(**v) for k, v in found["outcomes"].items()})

    def write(self, path: Path) -> None:
        """Write it down, in an order that changes little."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")

    def of(self, fault: Fault) -> Outcome | None:
        """Return what became of a fault; None if it was not planted as it stands now."""
        found = self.outcomes.get(f"{fault.room}: {fault.what}")
        return found if found is not None and found.is_of(fault) else None

    def plus(self, fault: Fault, outcome: Outcome) -> Report:
        """Add an outcome."""
        return replace(self, outcomes={**self.outcomes, f"{fault.room}: {fault.what}": outcome})

    def only(self, faults: Sequence[Fault]) -> Report:
        """Leave out what is no longer on the list."""
        kept = {f"{fault.room}: {fault.what}": self.of(fault) for fault in faults}
        return replace(self, outcomes={key: found for key, found in kept.items() if found})

    def unnoticed(self, faults: Sequence[Fault]) -> list[Fault]:
        """Return the faults that were planted and not noticed."""
        found = ((fault, self.of(fault)) for fault in faults)
        return [fault for fault, outcome in found if outcome and not outcome.noticed_by]

    def to_markdown(self, faults: Sequence[Fault]) -> str:
        """Write a table by room, and every fault that no test noticed."""
        rows = [
            _line(room, self, [f for f in faults if f.room == room])
            for room in dict.fromkeys(fault.room for fault in faults)
        ]
        rows.append(_line("all", self, faults))
        left = [f"- {f.room}: {f.what}: {f.unnoticed}" for f in self.unnoticed(faults)]
        heads = ["room", "faults", "noticed", "not noticed", "share", "seconds, each"]
        return "\n".join([f"{self.date}:", "", *table(heads, rows), *(["", *left] if left else [])])


def _line(room: str, report: Report, faults: Sequence[Fault]) -> list[str]:
    planted = [found for fault in faults if (found := report.of(fault))]
    noticed = sum(bool(outcome.noticed_by) for outcome in planted)
    share = f"{100 * noticed / len(planted):.1f} %" if planted else "-"
    each = f"{sum(o.seconds for o in planted) / len(planted):.0f}" if planted else "-"
    return [room, str(len(planted)), str(noticed), str(len(planted) - noticed), share, each]
