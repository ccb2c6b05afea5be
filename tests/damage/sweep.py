"""Many cases of damage, one after another, and what they came to."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tests.damage.case import cases, chosen
from tests.damage.judge import OUTCOMES, Judge
from tests.document import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.damage.judge import Finished

MANNERS = {"repaired first": True, "run as it is": False}
"""What is done to a damaged home, and whether that repairs it."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What cases of damage came to: how often which outcome, with repair and without."""

    date: str
    seed: int
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    """The cases after which a table was wrong and nothing said so."""

    def over(
        self, finished: Finished, place: Path, number: int, out: Callable[[str], None]
    ) -> Sweep:
        """Go through cases and tell the outcome of each.

        Args:
            finished: A home that has run.
            place: A folder for its copies.
            number: How many cases to take, in either manner.
            out: Told of every case.
        """
        picked, judge = chosen(cases(finished.home), number, self.seed), Judge(finished, place)
        counts, wrong, began = dict(self.counts), list(self.wrong), time.monotonic()
        for manner, repairs in MANNERS.items():
            counted = Counter[str]()
            for done, case in enumerate(picked, start=1):
                verdict = judge.judge(case, repairs=repairs)
                counted[verdict.outcome] += 1
                out(f"{done:>4}/{len(picked)} {time.monotonic() - began:6.0f} s  {verdict}")
                if verdict.outcome == "SILENTLY WRONG":
                    wrong.append(f"{manner}: {verdict}")
            counts[manner] = dict(counted)
        return Sweep(self.date, self.seed, counts, tuple(wrong))

    def to_json(self) -> str:
        """Write it down."""
        return json.dumps(asdict(self), indent=1) + "\n"

    def to_markdown(self) -> str:
        """Write it as a table."""
        rows = [
            [manner, str(sum(counted.values())), *(str(counted.get(o, 0)) for o in OUTCOMES)]
            for manner, counted in self.counts.items()
        ]
        head = f"{self.date}, seed {self.seed}:"
        heads = ["a damaged home", "cases", *(outcome.lower() for outcome in OUTCOMES)]
        return "\n".join((head, "", *table(heads, rows)))
