"""The example on a cluster whose executors and workers die."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.cluster import Cluster

from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger

if TYPE_CHECKING:
    from pathlib import Path

ETL = "examples/etl/app.py"
PROFILE = """
[profile.default.spark]
"spark.sql.shuffle.partitions" = "2"
"spark.default.parallelism" = "2"
"""


def batches(home: Path) -> int:
    if not (home / "tables" / "gold" / "_delta_log").exists():
        return 0
    return sum(entry.batches for entry in read_ledger(Home.at(home)).tables)


def go_on(home: Path, driver: subprocess.Popen[bytes]) -> None:
    """Wait until every table has had further batches."""
    before, until = batches(home), time.monotonic() + 120
    while batches(home) < before + 3:
        assert driver.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)


def millstream(*words: str) -> list[str]:
    return [sys.executable, "-m", "millstream.cli", *words]


@pytest.mark.spark
@pytest.mark.cluster
def test_a_cluster_that_loses_an_executor_and_a_worker_loses_no_row(tmp_path: Path) -> None:
    home, log = tmp_path / "home", (tmp_path / "driver.log").open("wb")
    app = str(shutil.copy(ETL, tmp_path))
    (tmp_path / "millstream.toml").write_text(PROFILE)
    with Cluster() as cluster, log:
        command = millstream("run", app, "--home", str(home), "--master", cluster.master)
        driver = subprocess.Popen(
            command, env={**os.environ, **cluster.environment}, stdout=log, stderr=log
        )
        try:
            go_on(home, driver)
            cluster.executors[0].send(signal.SIGKILL)
            go_on(home, driver)
            cluster.kill_worker()
            go_on(home, driver)
            driver.send_signal(signal.SIGTERM)
            assert driver.wait(60) == 0
        finally:
            driver.kill()
            driver.wait()

    subprocess.run(millstream("run", app, "--home", str(home), "--once"), check=True)
    subprocess.run(millstream("batch", app, "--home", str(home), "--compare"), check=True)
    assert read_ledger(Home.at(home)).is_balanced
