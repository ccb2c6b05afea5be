"""The automaton against the brute-force matcher, on as many streams as wanted of every kind.

python -m tests.operators.patterns.long --streams 10000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.operators.patterns.brute import Brute
from tests.operators.patterns.chance import Trial, rows_of, spec_of

import millstream.operators.patterns.pattern as declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.operators.patterns.brute import Spec, StepSpec

KINDS = (
    "strict", "relaxed", "optional", "repeated", "unbounded", "greedy", "reluctant", "without",
    "alternatives", "reference", "aggregate", "count", "several ends", "partial end",
    "optional beside without",
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


def hold(seed: int) -> tuple[Spec, int, int]:
    """Hold the automaton to the brute-force matcher: at once, and in cuts."""
    dice = random.Random(seed)
    spec, rows = spec_of(dice), rows_of(dice)
    trial, brute = Trial(spec, rows), Brute(spec, rows)
    wanted = [[(name, rows[number]) for number, _, name in one] for one in brute.matches()]
    missed = [[(name, rows[number])] for number, name in brute.absences()]
    for cut in (None, dice):
        found, absent = trial.matches(cut), trial.absences(cut)
        assert found == wanted, (seed, spec, rows, found, wanted)
        assert absent == missed, (seed, spec, rows, absent, missed)
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
