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
from tests.dstream.programs.lifecycle import LIFECYCLES, Lifecycle
from tests.dstream.record import FAILURES, PROGRAMS, REFUSALS, answers, failed, recorded, refused
from tests.dstream.test_surface import METHODS

from millstream import dstream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.dstream.program import Outputs, Program

RECORDED = recorded()
OF_THE_JVM = ("Py4JJavaError", "IllegalArgumentException")
"""Errors of Spark's JVM, which no engine but pyspark's can raise: ours says what was wrong."""
LISTENER = "StreamingListener"
OF_SECONDS = {
    *("reduced_by_window", "counted_by_window", "counted_by_value_and_window", "joined"),
    *("reduced_by_key_and_window", "reduced_by_key_and_window_with_filter", "joined_windows"),
    *("grouped_by_key_and_window", "inverse_of_a_state", "state_joined"),
}
"""Programs that `make proofs` runs: hashtags and others do what they do, in less time."""


def test_there_is_a_record_of_everything() -> None:
    assert {*RECORDED["programs"]} == {*PROGRAMS}
    assert {*RECORDED["refusals"]} == {*REFUSALS}
    assert {*RECORDED["failures"]} == {*FAILURES}


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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name in OF_SECONDS))
        for name in sorted(PROGRAMS)
    ],
)
def test_a_program_gives_what_it_gives_on_pyspark(name: str, spark: SparkSession) -> None:
    def run(program: Program) -> Outputs:
        sc, count = spark.sparkContext, program.count
        return run_ours(sc, program.body, program.queues, program.interval, count=count)

    assert answers(PROGRAMS[name], run) == RECORDED["programs"][name]


@pytest.mark.parametrize("name", sorted(REFUSALS))
def test_what_pyspark_refuses_is_refused_by_the_same_kind_of_error(
    name: str, spark: SparkSession
) -> None:
    theirs, *_, their_message = RECORDED["refusals"][name] * 2

    *kinds, message = refused(dstream, spark.sparkContext, name)

    if theirs in OF_THE_JVM or not their_message:
        assert "MillstreamError" in kinds
    else:
        assert {theirs} <= {*kinds, message}
        assert their_message in message


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_a_function_that_raises_ends_the_run_by_an_error_that_says_so(
    name: str, spark: SparkSession
) -> None:
    def run(program: Program) -> Outputs:
        return run_ours(spark.sparkContext, program.body, program.queues, count=program.count)

    assert RECORDED["failures"][name] != failed(FAILURES[name], lambda program: {})
    assert "UserCodeError" in failed(FAILURES[name], run)


@pytest.mark.long
@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda each: each.__name__)
def test_a_context_lives_as_it_is_documented(
    lifecycle: Lifecycle, spark: SparkSession, tmp_path: Path
) -> None:
    assert lifecycle(dstream, spark.sparkContext, tmp_path) == LIFECYCLES[lifecycle]


@pytest.mark.long
def test_what_is_recorded_is_what_pyspark_gives() -> None:
    subprocess.run([sys.executable, "-m", "tests.dstream.record", "--check"], check=True)


@pytest.mark.slow
def test_random_programs_follow_the_rules(spark: SparkSession) -> None:
    sc = spark.sparkContext

    compared = [
        compare_ours(sc, 8, 1, crashing=False, at_once=8),
        compare_ours(sc, 4, 1, crashing=True, at_once=4),
    ]

    assert sum(each.programs for each in compared) >= 12
