"""The same program text on both engines: ours gives what was recorded of pyspark.streaming."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.dstream import programs
from tests.dstream.long import compare_ours
from tests.dstream.ours import run_ours
from tests.dstream.record import LIFECYCLES, PROGRAMS, REFUSALS, answers, lived, recorded, refused
from tests.dstream.test_surface import METHODS

from millstream import dstream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.dstream.program import Outputs, Program

RECORDED = recorded()
LISTENER = "StreamingListener"


def test_there_is_a_record_of_everything() -> None:
    assert {*RECORDED["programs"]} == {*PROGRAMS}
    assert {*RECORDED["refusals"]} == {*REFUSALS}
    assert {*RECORDED["lifecycles"]} == {*LIFECYCLES}


def test_the_programs_use_every_method() -> None:
    [folder] = programs.__path__
    trees = [ast.parse(path.read_text()) for path in Path(folder).glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}

    missing = [
        (kind, name)
        for kind, name in METHODS
        if name not in (defined if kind == LISTENER else used)
    ]

    assert not [each for each in missing if "Receiver" not in each[1]]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_gives_what_it_gives_on_pyspark(name: str, spark: SparkSession) -> None:
    def run(program: Program) -> Outputs:
        sc, count = spark.sparkContext, program.count
        return run_ours(sc, program.body, program.queues, program.interval, count=count)

    assert answers(PROGRAMS[name], run) == RECORDED["programs"][name]


@pytest.mark.parametrize("name", sorted(REFUSALS))
def test_what_pyspark_refuses_is_refused_by_the_same_kind_of_error(
    name: str, spark: SparkSession
) -> None:
    [theirs] = RECORDED["refusals"][name][:1]

    *kinds, message = refused(dstream, spark.sparkContext, name)

    assert theirs in kinds, (kinds, message)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LIFECYCLES))
def test_a_context_lives_as_on_pyspark(name: str, spark: SparkSession) -> None:
    assert lived(dstream, spark.sparkContext, name) == RECORDED["lifecycles"][name]


@pytest.mark.long
def test_what_is_recorded_is_what_pyspark_gives() -> None:
    subprocess.run([sys.executable, "-m", "tests.dstream.record", "--check"], check=True)


@pytest.mark.slow
def test_random_programs_follow_the_rules(spark: SparkSession) -> None:
    sc = spark.sparkContext

    compared = [compare_ours(sc, 12, 1, crashing=False), compare_ours(sc, 4, 1, crashing=True)]

    assert sum(each.programs for each in compared) >= 16
