"""Random programs, compared with the rules in plain Python.

python -m tests.dstream.long --programs 2000 --crashed 200 --seed 1
python -m tests.dstream.long --spark 200

With --spark it is pyspark.streaming that is compared with the rules, so that the rules are right.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, seed, settings
from tests.dstream.chance import random_programs
from tests.dstream.program import written

if TYPE_CHECKING:
    from collections.abc import Callable

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


def compare(run: Callable[[RandomProgram], Outputs], programs: int, number: int) -> Compared:
    """Compare so many programs; the first that differs is made as small as it can be."""
    compared, began = Compared(), time.monotonic()

    @seed(number)
    @settings(
        max_examples=programs,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=[*HealthCheck],
    )
    @given(random_programs())
    def equal(program: RandomProgram) -> None:
        wanted = program.answers()
        assert written(run(program)) == written(wanted), program
        compared.add(program, wanted)
        if not compared.programs % 20:
            _tell(f"{compared.programs} programs, {time.monotonic() - began:.0f} s")

    equal()
    compared.seconds = time.monotonic() - began
    return compared


def compare_spark(programs: int, number: int) -> Compared:
    """Compare pyspark.streaming with the rules."""
    from tests.dstream.spark_engine import run_spark, spark_context

    with spark_context() as sc:
        return compare(lambda p: run_spark(sc, p.body, p.queues), programs, number)


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201
