"""Random programs, compared with the rules in plain Python.

python -m tests.dstream.long --programs 2000 --crashed 200 --seed 1
python -m tests.dstream.long --spark 200

With --spark it is pyspark.streaming that is compared with the rules, so that the rules are right.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from tests.dstream.chance import random_program
from tests.dstream.ours import run_ours
from tests.dstream.together import Together

from millstream.crash import PROGRAM_POINTS
from millstream.spark.session import open_session, stop_session
from millstream.testing.quick_settings import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark import SparkContext
    from tests.dstream.chance import RandomProgram
    from tests.dstream.program import Outputs

AT_ONCE = 20
"""Programs in one context; then a batch of one of them takes less than a job of its own."""


@dataclass
class Compared:
    """How much was compared, and equal."""

    programs: int = 0
    deaths: int = 0
    """Of drivers, each with all programs that ran at once."""
    batches: int = 0
    elements: int = 0
    seconds: float = 0
    operations: Counter[str] = field(default_factory=Counter)

    def add(self, program: RandomProgram) -> None:
        """Count a program whose answers were equal."""
        self.programs += 1
        self.batches += program.count
        answers = program.answers()
        self.elements += sum(len(e) for batches in answers.values() for _, e in batches)
        self.operations.update(step.operation for step in program.steps)

    def to_dict(self) -> dict[str, Any]:
        """What is written of it."""
        return {
            "programs": self.programs,
            "deaths of a driver": self.deaths,
            "batches": self.batches,
            "elements": self.elements,
            "seconds": round(self.seconds, 1),
            "operations": dict(sorted(self.operations.items())),
        }


def compare(  # noqa: PLR0913 - what is compared, and how much of it
    run: Callable[[Together], Outputs],
    make: Callable[[Random], RandomProgram],
    count: int,
    number: int,
    *,
    at_once: int = 1,
    points: Sequence[str] = (),
    seconds: float = math.inf,
    note: Callable[[Compared], None] = lambda _: None,
) -> Compared:
    """Compare so many programs, some at once; those that differ are given.

    What is equal so far is noted all the time: a run that is cut short counts as far as it came.
    """
    compared, began = Compared(), time.monotonic()
    drawn: set[int] = set()

    @seed(number)
    @settings(
        max_examples=-(-count // at_once),
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(st.integers(0, 2**62))
    def equal(number: int) -> None:
        if time.monotonic() - began > seconds or number in drawn:
            return
        drawn.add(number)
        dice = Random(number)
        # Hypothesis repeats the elements of a list, and the same program again shows nothing.
        several = [make(Random(dice.getrandbits(62))) for _ in range(at_once)]
        together = Together.of(several, points, dice)
        assert not together.differences(run(together)), together
        for program in several:
            compared.add(program)
        compared.deaths += len(together.crashes)
        compared.seconds = time.monotonic() - began
        note(compared)
        _tell(f"{compared.programs} programs, {time.monotonic() - began:.0f} s")

    equal()
    return compared


def compare_spark(programs: int, number: int, seconds: float = math.inf) -> Compared:
    """Compare pyspark.streaming with the rules."""
    from tests.dstream.spark_engine import run_spark, spark_context

    with spark_context() as sc:
        run = partial(run_spark, sc)
        make = partial(random_program, ours=False)
        return compare(lambda p: run(p.body, p.queues), make, programs, number, seconds=seconds)


def compare_ours(  # noqa: PLR0913 - what is compared, and how much of it
    sc: SparkContext,
    programs: int,
    number: int,
    *,
    crashing: bool,
    at_once: int = AT_ONCE,
    seconds: float = math.inf,
    note: Callable[[Compared], None] = lambda _: None,
) -> Compared:
    """Compare ours with the rules; drivers may die in every program."""
    run = partial(run_ours, sc)
    return compare(
        lambda p: run(p.body, p.queues, crashes=p.crashes),
        random_program,
        programs,
        number,
        at_once=at_once,
        points=tuple(PROGRAM_POINTS) if crashing else (),
        seconds=seconds,
        note=note,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=0)
    parser.add_argument("--crashed", type=int, default=0, help="programs whose driver dies")
    parser.add_argument("--spark", type=int, default=0, help="programs run by pyspark.streaming")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds",
        type=float,
        default=math.inf,
        help="how long each kind is compared",
    )
    parser.add_argument("--json", type=Path, help="the results are added to this file")
    given = parser.parse_args()

    def note(name: str, compared: Compared) -> None:
        if given.json:
            before = json.loads(given.json.read_text()) if given.json.exists() else {}
            found = before | {f"{name}, seed {given.seed}": compared.to_dict()}
            given.json.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")

    if given.spark:
        note("pyspark.streaming", compare_spark(given.spark, given.seed, given.seconds))
        return
    with TemporaryDirectory() as logs:
        spark = open_session("dstreams", master="local[1]", conf=QUICK, log_dir=Path(logs))
        for name, programs in (("ours", given.programs), ("ours, killed", given.crashed)):
            if programs:
                compare_ours(
                    spark.sparkContext,
                    programs,
                    given.seed,
                    crashing=name != "ours",
                    seconds=given.seconds,
                    note=partial(note, name),
                )
        stop_session(spark)


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
