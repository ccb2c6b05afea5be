from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from tests import shop

from millstream.testing.chaos import Clock, Subject, Trial, schedule
from millstream.testing.chaos.fault import Overtaken

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.chaos.fault import Kind

KILLS = 10
SEED = int(os.environ.get("MILLSTREAM_SEED", time.time_ns() % 1_000_000))
SHARES: dict[Kind, int] = {"point": 1, "moment": 1}
ETL = Subject("examples/etl/app.py", Clock)
SHOP = Subject(shop.APP, shop.feeder)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("subject", [ETL, SHOP], ids=["etl", "shop"])
def test_nothing_is_lost_or_twice_after_ten_kills_at_named_points_and_random_moments(
    tmp_path: Path, spark: SparkSession, subject: Subject
) -> None:
    with Trial(subject.app, subject.feeder(tmp_path / "input", SEED), tmp_path) as trial:
        [faults] = schedule(trial.scene.queries, seed=SEED, points=KILLS, shares=SHARES)

        outcomes = [trial.suffer(fault) for fault in faults]
        report = trial.finish(spark)

    again = f"MILLSTREAM_SEED={SEED} gives the same faults"
    assert [(o.fault, o.broken) for o in outcomes if o.broken] == [], again
    # On a machine that is busy with other things a point may not be reached in time.
    assert sum(o.struck for o in outcomes) > KILLS // 2, again
    assert report.is_good, (report.broken, report.findings.remarks, again)
    assert report.rows > 0


@pytest.mark.spark
@pytest.mark.slow
def test_a_paused_driver_that_was_overtaken_writes_nothing_when_it_wakes(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Trial(SHOP.app, SHOP.feeder(tmp_path / "input", 1), tmp_path) as trial:
        outcome = trial.suffer(Overtaken(after_s=0.5))
        report = trial.finish(spark)

    assert (outcome.struck, outcome.broken) == (True, "")
    assert report.is_good, (report.broken, report.findings.remarks)
