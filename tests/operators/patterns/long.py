"""The automaton against the brute-force matcher, on as many streams as wanted of every kind.

python -m tests.operators.patterns.long --streams 10000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.operators.patterns.brute import Brute
from tests.operators.patterns.chance import Trial, rows_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.operators.patterns.brute import Spec, StepSpec

AT_ONCE = 1000
KINDS = (
    "strict", "relaxed", "optional", "repeated", "unbounded", "greedy", "reluctant", "without",
    "alternatives", "reference", "aggregate", "count", "several ends", "partial end",
    "optional beside without",
    "skip_past_last", "skip_to_next", "skip_to_first", "skip_to_last",
)  # fmt: skip


def kinds_of(spec: Spec) -> Iterator[str]:
    """What a pattern is an instance of."""
    yield spec.after_match.partition("(")[0]
    for step in spec.steps:
        varies = step.optional or step.most != step.least
        yield "strict" if step.strict else "relaxed"
        yield from ["optional"] * step.optional
        yield from ["repeated"] * (step.most != 1)
        yield from ["unbounded"] * (step.most is None)
        yield from ["greedy" if step.greedy else "reluctant"] * varies
        yield from ["without"] * bool(step.without)
        yield from ["alternatives"] * (len(step.kinds) > 1)
        for kind in (*step.kinds, *step.without):
            yield from ["aggregate"] * any(f in kind.sql for f in ("sum(", "count(", "first("))
            yield from ["count"] * ("count(" in kind.sql)
            yield from ["reference"] * ("." in kind.sql)
    for one, other in pairwise(spec.steps):
        yield from ["optional beside without"] * bool(
            (one.optional or other.optional) and other.without
        )
    ends = growing(spec)
    yield from ["several ends"] * (len(ends) > 1)
    yield from ["partial end"] * (len(ends) > 1 and any(s.optional and s.least > 1 for s in ends))


def growing(spec: Spec) -> list[StepSpec]:
    """The steps at the end that may take rows after the match is complete."""
    last = max(number for number, step in enumerate(spec.steps) if not step.optional)
    ends = [s for s in spec.steps[last:] if s.optional or s.most != s.least]
    return [step for step in ends if step.greedy]


def compare(seed: int) -> tuple[set[str], int, int]:
    """Compare the automaton with the brute-force matcher, at once and in cuts; give the kinds."""
    dice = random.Random(seed)
    spec, rows = spec_of(dice), rows_of(dice)
    trial, brute = Trial(spec, rows), Brute(spec, rows)
    wanted = [[(name, rows[number]) for number, _, name in one] for one in brute.matches()]
    missed = [[(name, rows[number])] for number, name in brute.absences()]
    for cut in (None, dice):
        found, absent = trial.matches(cut), trial.absences(cut)
        assert found == wanted, (seed, spec, rows, found, wanted)
        assert absent == missed, (seed, spec, rows, absent, missed)
    return {*kinds_of(spec)}, len(wanted), len(missed)


@dataclass(frozen=True)
class Compared:
    """What was compared so far, in seconds of all processes together."""

    seed: int
    seconds: float = 0
    counts: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def read(path: Path) -> Compared:
        """Read what an earlier run has written."""
        found = json.loads(path.read_text())
        found["counts"], found["by_kind"] = Counter(found["counts"]), Counter(found["by_kind"])
        return Compared(**found)

    def to_json(self) -> str:
        """Write it as `read` reads it."""
        named: dict[str, Any] = {"seed": self.seed, "seconds": round(self.seconds, 1)}
        named |= {"counts": self.counts, "by_kind": self.by_kind}
        return json.dumps(named, indent=2, sort_keys=True) + "\n"

    def more(self, pool: ProcessPoolExecutor) -> Compared:
        """Compare some more streams."""
        began, counts, by_kind = time.monotonic(), Counter(self.counts), Counter(self.by_kind)
        first = (self.seed << 32) + counts["streams"]
        for kinds, matches, absences in pool.map(
            compare, range(first, first + AT_ONCE), chunksize=50
        ):
            by_kind.update(kinds)
            counts.update(streams=1, matches=matches, absences=absences, matching=matches > 0)
        return Compared(self.seed, self.seconds + time.monotonic() - began, counts, by_kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="written after every thousand streams")
    parser.add_argument(
        "--go-on", action="store_true", help="with the streams after those of --json"
    )
    given = parser.parse_args()
    compared = Compared.read(given.json) if given.go_on else Compared(given.seed)
    with ProcessPoolExecutor() as pool:
        while min(compared.by_kind[kind] for kind in KINDS) < given.streams:
            compared = compared.more(pool)
            if given.json:
                given.json.write_text(compared.to_json())
    print(compared.to_json())  # noqa: T201


if __name__ == "__main__":
    main()
