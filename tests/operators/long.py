"""Every operator by event time: prefix consistent on many random runs, and equal to DuckDB.

python -m tests.operators.long --runs 200 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time
from typing import TYPE_CHECKING

from tests.operators import apps
from tests.operators.trial import hold

from millstream.settings import resolve_master
from millstream.spark.session import open_session
from millstream.testing.course import arrivals_of
from millstream.testing.property import prove

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.app import App

BOUNDS: tuple[str | tuple[str, str], ...] = ("10 seconds", ("5 seconds", "10 seconds"), "0 s")
APPS: dict[str, Callable[[random.Random], App]] = {
    "joins": lambda dice: apps.joined(*apps.HOWS, within=dice.choice(BOUNDS)),
    "until": lambda _: apps.ending(*apps.HOWS),
    "as_of": lambda _: apps.as_of(),
    "counted": lambda _: apps.counted(),
    "chained": lambda _: apps.chained(),
    "windows": lambda _: apps.windowed(),
    "patterns": lambda _: apps.matched(),
}
_AT_A_TIME = 25
"""Runs on the same rows, and the same bound."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=20, help="comparisons with DuckDB")
    parser.add_argument("--only", nargs="*", default=[*APPS], choices=[*APPS])
    given = parser.parse_args()
    spark = open_session("operators", master=resolve_master(None, code=None).value)
    began, rows = time.monotonic(), 0
    for trial in range(given.trials):
        rows += hold(spark, random.Random(given.seed * 1000 + trial), 1_000)
    _tell(f"DuckDB: {given.trials} trials, {rows} rows equal, {time.monotonic() - began:.0f} s")
    for name in given.only:
        began, done, seed = time.monotonic(), 0, given.seed
        while done < given.runs:
            dice = random.Random(f"{name}:{seed}")
            app, reported = APPS[name](dice), apps.rows_of(dice, 14)
            known = {n: reported[n] for n in reported if n in {s.name for s in app.graph.sources}}
            runs = min(_AT_A_TIME, given.runs - done)
            done += prove(app, arrivals_of(app.graph, known), spark, runs=runs, seed=seed).runs
            seed += 1
        _tell(f"{name}: {done} runs held, {time.monotonic() - began:.0f} s")


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
