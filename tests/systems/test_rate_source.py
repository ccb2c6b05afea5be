from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.apps import app_of, forget_commit, rows, run

from millstream.systems.rate.source import Rate

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_rate_counts_without_gaps_over_restarts_and_retries(
    spark: SparkSession, tmp_path: Path
) -> None:
    app = app_of(Rate(rows_per_second=5))
    run(app, tmp_path)
    assert len(rows(tmp_path, "readings")) >= 50
    time.sleep(1.5)
    run(app, tmp_path)
    before = rows(tmp_path, "readings")

    forget_commit(tmp_path, "readings")
    assert not [event for event in run(app, tmp_path) if event.kind == "differs"]

    landed = sorted(rows(tmp_path, "readings", "value", "_position", "_verdict"))
    assert len(landed) >= len(before) >= 55
    assert landed == [(n, n, "ok") for n in range(len(landed))]
    assert set(map(str, before)) <= set(map(str, rows(tmp_path, "readings")))
