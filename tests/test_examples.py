"""Every example, on records that are made up for it: batch = stream = replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.loading import load
from millstream.testing.evidence import invented
from millstream.testing.property import prove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNS, RECORDS = 3, 15


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
