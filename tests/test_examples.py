"""Every example, on records that are made up for it: batch = stream = replay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.apps import rows, run

from millstream.cli.new import make, templates
from millstream.loading import load
from millstream.testing.evidence import invented
from millstream.testing.property import prove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNS, RECORDS = 3, 15


PROFILES = {"wordcount": "texts"}


SCRIPTS = {"weblog": "traffic.py", "flights": "replay.py"}
"""What writes the data of an example."""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("template", templates())
def test_a_new_app_has_rows_after_it_has_run_once(
    template: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make("mine", template, tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    if script := SCRIPTS.get(template):
        subprocess.run([sys.executable, script, f"build/{template}"], check=True)
    app = load("app.py", PROFILES.get(template))

    run(app, tmp_path / "home")

    found = {
        name: len(rows(tmp_path / "home", name)) for name in app.home(tmp_path / "home").tables
    }
    assert all(found[source.name] for source in app.graph.sources), found
    assert any(found[table.name] for table in app.graph.tables) or not app.graph.tables, found


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(app.parent.name for app in EXAMPLES.glob("*/app.py")))
def test_an_example_is_prefix_consistent(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = load(str(EXAMPLES / name / "app.py"))

    proof = prove(app, invented(app.graph, RECORDS, seed=1), spark, runs=RUNS, seed=1)

    assert proof.runs >= RUNS
    assert proof.tables
