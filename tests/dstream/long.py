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
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, seed, settings
from tests.dstream.chance import random_programs
from tests.dstream.ours import run_ours
from tests.dstream.program import written

from millstream.crash import PROGRAM_POINTS
from millstream.spark.session import open_session, stop_session
from millstream.testing.quick_settings import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import strategies as st
    from pyspark import SparkContext
    from tests.dstream.chance import RandomProgram
    from tests.dstream.program import Outputs


@dataclass
class Compared:
    """How much was compared, and equal."""

    programs: int = 0
    batches: int = 0
    elements: int = 0
    seconds: float = 0
    operations: Counter[str] = field(default_factory=Counter)

    def add(self, program: RandomProgram, answers: Outputs) -> None:
        """Count a program whose answers were equal."""
        self.programs += 1
        self.batches += program.count
        self.elements += sum(len(e) for batches in answers.values() for _, e in batches)
        self.operations.update(step.operation for step in program.steps)

    def to_dict(self) -> dict[str, Any]:
        """What is written of it."""
        return {
            "programs": self.programs,
            "batches": self.batches,
            "elements": self.elements,
            "seconds": round(self.seconds, 1),
            "operations": dict(sorted(self.operations.items())),
        }


def compare(
    run: Callable[[RandomProgram], Outputs],
    programs: st.SearchStrategy[RandomProgram],
    count: int,
    number: int,
    seconds: float = math.inf,
) -> Compared:
    """Compare so many programs; the first that differs is made as small as it can be."""
    compared, began = Compared(), time.monotonic()

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=[*HealthCheck],
    )
    @given(programs)
    def equal(program: RandomProgram) -> None:
        if time.monotonic() - began > seconds:
            return
        wanted = program.answers()
        assert written(run(program)) == written(wanted), program
        compared.add(program, wanted)
        if not compared.programs % 20:
            _tell(f"{compared.programs} programs, {time.monotonic() - began:.0f} s")

    equal()
    compared.seconds = time.monotonic() - began
    return compared


def compare_spark(programs: int, number: int, seconds: float = math.inf) -> Compared:
    """Compare pyspark.streaming with the rules."""
    from tests.dstream.spark_engine import run_spark, spark_context

    with spark_context() as sc:
        run = partial(run_spark, sc)
        strategy = random_programs(ours=False)
        return compare(lambda p: run(p.body, p.queues), strategy, programs, number, seconds)


def compare_ours(
    sc: SparkContext, programs: int, number: int, *, crashing: bool, seconds: float = math.inf
) -> Compared:
    """Compare ours with the rules; drivers may die in every program."""
    strategy = random_programs(tuple(PROGRAM_POINTS) if crashing else ())
    run = partial(run_ours, sc)
    return compare(
        lambda p: run(p.body, p.queues, crashes=p.crashes), strategy, programs, number, seconds
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
    found: dict[str, Compared] = {}
    if given.spark:
        found["pyspark.streaming"] = compare_spark(given.spark, given.seed, given.seconds)
    else:
        with TemporaryDirectory() as logs:
            conf, master = QUICK, "local[2]"
            spark = open_session("dstreams", master=master, conf=conf, log_dir=Path(logs))
            for name, programs in (("ours", given.programs), ("ours, killed", given.crashed)):
                if programs:
                    found[name] = compare_ours(
                        spark.sparkContext,
                        programs,
                        given.seed,
                        crashing=name != "ours",
                        seconds=given.seconds,
                    )
            stop_session(spark)
    results = {f"{name}, seed {given.seed}": each.to_dict() for name, each in found.items()}
    if given.json:
        before = json.loads(given.json.read_text()) if given.json.exists() else {}
        text = json.dumps(before | results, indent=2, sort_keys=True)
        given.json.write_text(text + "\n")
    _tell(json.dumps(results, indent=2))


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
