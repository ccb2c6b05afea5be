"""The same program text on both engines: ours gives what was recorded of pyspark.streaming."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.dstream import programs
from tests.dstream.ours import run_ours
from tests.dstream.record import LIFECYCLES, PROGRAMS, REFUSALS, answers, lived, recorded, refused
from tests.dstream.test_surface import METHODS

from millstream import dstream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
