"""How far a batch is that takes long, as Spark knows it while the batch runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.apps import READING, reading, timed

import millstream as ms
from millstream.spark.jobs import long_jobs
from millstream.views.progress import DatasetView, look

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARTS = 4
PATIENCE_S = 60


def held_up(gate: Path) -> Callable[[Any], dict[str, int]]:
    """Make a function that stops at one row until a file is there."""

    def pass_on(row: Any) -> dict[str, int]:
        until = time.monotonic() + PATIENCE_S
        while row.id == 0 and not gate.exists() and time.monotonic() < until:
            time.sleep(0.01)
        return {"number": row.id}

    return pass_on


def test_a_batch_that_takes_long_shows_its_tasks_and_an_estimate(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, gate = ms.Memory(READING), tmp_path / "gate"
    source.add(*(reading(number, "12:00:00") for number in range(40)))
    app = timed(source)

    @app.table
    def slow(readings: DataFrame) -> DataFrame:
        spread = readings.repartition(PARTS, "id")
        return ms.add_columns(spread, held_up(gate), "number BIGINT")

    @app.table(mode="complete")
    def counts(slow: DataFrame) -> DataFrame:
        return slow.groupBy("id").agg(F.count("*").alias("rows"))

    running = app.open({"home": tmp_path / "home", "once": True, "fail_fast": True})
    seen: list[DatasetView] = []

    def on_look() -> None:
        jobs = long_jobs(spark, least_s=0.5)
        views = {view.name: view for view in look(running.queries, {}, jobs)}
        if views["slow"].under_way is not None:
            seen.append(views["slow"])
        if any(v.under_way and v.under_way.done >= v.under_way.tasks - 1 for v in seen):
            gate.touch()

    running.serve(on_look)
    running.raise_if_stopped_for_good()

    last = seen[-1].under_way
    assert last is not None
    assert last.done == last.tasks - 1 > 0
    assert last.remaining_s is not None
    assert 0 < last.remaining_s < last.seconds
    assert seen[-1].batch == -1
    assert look(running.queries, {}, ())[1].under_way is None
