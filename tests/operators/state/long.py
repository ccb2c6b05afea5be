"""Keyed state against plain Python on as many streams as wanted, and under the proof kit.

python -m tests.operators.state.long --streams 10000 --runs 200 --seed 1
"""

from __future__ import annotations

import argparse
import math
import random
import time

from tests.operators.state.apps import CAST, visits_app
from tests.operators.state.chance import (
    batched,
    counted,
    rows_of,
    streamed,
    visits,
    wanted_counts,
    wanted_visits,
)

from millstream.operators.state import buckets
from millstream.testing import assert_prefix_consistent

_AS_THEY_ARE = (buckets._BUCKETS, buckets.RECENT, buckets.LARGEST)
_TIGHT = ((0,), 1, 1)
"""All keys in one bucket, which places and splits all the time."""


def hold(dice: random.Random) -> int:
    """Hold the calls for a user's rows to plain Python: in a batch, and in cuts."""
    rows = rows_of(dice, users="a")
    if not rows:
        return 0
    answers = 0
    for function, wanted in ((visits, wanted_visits), (counted, wanted_counts)):
        until = dice.choice((dice.randrange(260), 300))
        expected = sorted(wanted(rows, until), key=str)
        given, raised = streamed(function, rows, dice, until)
        assert sorted(given, key=str) == expected, (rows, until, given, expected)
        assert sorted(batched(function, rows, until), key=str) == expected, (rows, until)
        end = max(at for _, at, _ in rows)
        whole = sorted(batched(function, rows, math.inf), key=str)
        assert whole == sorted(wanted(rows, end), key=str), (rows, end)
        unlucky = [r for r in rows if function is visits and r[2] == 13 and r[1] <= until]
        assert len(raised) == len(unlucky), (rows, raised)
        answers += len(expected)
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()
    answers = sum(hold(random.Random((given.seed << 32) + n)) for n in range(given.streams))
    print(f"{given.streams} streams, {answers} answers in {time.monotonic() - began:.0f} s")  # noqa: T201
    for limits in (_AS_THEY_ARE, _TIGHT) if given.runs else ():
        began = time.monotonic()
        buckets._BUCKETS, buckets.RECENT, buckets.LARGEST = limits
        assert_prefix_consistent(visits_app(counted), CAST, runs=given.runs, seed=given.seed)
        reported = f"{len(limits[0])} buckets, head of {limits[1]} bytes, parts of {limits[2]}"
        print(f"{given.runs} runs held, {reported}: {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
