"""The automaton against the brute-force matcher, on as many streams as wanted of every kind.

python -m tests.operators.patterns.long --streams 10000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

from tests.operators.patterns.brute import Brute
from tests.operators.patterns.chance import Trial, rows_of, spec_of

import millstream.operators.patterns.pattern as declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.operators.patterns.brute import Spec

KINDS = (
    "strict", "relaxed", "optional", "repeated", "unbounded", "greedy", "reluctant", "without",
    "alternatives", "reference", "aggregate",
    "skip_past_last", "skip_to_next", "skip_to_first", "skip_to_last",
)  # fmt: skip


def forget(question: str, find: Callable[[], Mapping[str, int]], **_: object) -> Mapping[str, int]:
    """Remember nothing between processes: no pattern comes twice."""
    return find()


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
            yield from ["reference"] * ("." in kind.sql)


def hold(seed: int) -> tuple[Spec, int, int]:
    """Hold the automaton to the brute-force matcher: at once, and in cuts."""
    dice = random.Random(seed)
    spec, rows = spec_of(dice), rows_of(dice)
    trial, brute = Trial(spec, rows), Brute(spec, rows)
    wanted = [[(name, rows[number]) for name, number in one] for one in brute.matches()]
    missed = [rows[number] for number in brute.absences()]
    for cut in (None, dice):
        found, absent = trial.matches(cut), trial.absences(cut)
        assert found == wanted, (seed, spec, rows, found, wanted)
        assert [row for [(_, row)] in absent] == missed, (seed, spec, rows, absent, missed)
    return spec, len(wanted), len(missed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    setattr(declared, "remembered", forget)  # noqa: B010
    began, seen, counts, seed = time.monotonic(), Counter[str](), Counter[str](), given.seed << 32
    while min(seen[kind] for kind in KINDS) < given.streams:
        spec, matches, absences = hold(seed)
        seen.update(set(kinds_of(spec)))
        counts.update(streams=1, matches=matches, absences=absences, matching=matches > 0)
        seed += 1
    print(  # noqa: T201
        dict(counts), f"in {time.monotonic() - began:.0f} s; streams by kind:", dict(seen)
    )


if __name__ == "__main__":
    main()
