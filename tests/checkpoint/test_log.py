from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st
from pyspark.sql import functions as F
from tests.apps import READING, forget_commit, moment, reading, run, timed

from millstream.checkpoint import CheckpointLog, changed_files
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def test_a_query_that_never_ran_has_no_log(tmp_path: Path) -> None:
    log = CheckpointLog(tmp_path / "nothing")

    known = (log.query_id, log.planned, log.committed, log.watermark_ms, log.operators)

    assert known == (None, -1, -1, 0, ())


@given(numbers=st.sets(st.integers(0, 10**6), min_size=1))
def test_the_last_batch_is_the_greatest_number_not_the_last_name(
    tmp_path_factory: pytest.TempPathFactory, numbers: set[int]
) -> None:
    log = CheckpointLog(tmp_path_factory.mktemp("checkpoint"))
    (log.path / "commits").mkdir()
    for number in numbers:
        (log.path / "commits" / str(number)).touch()
        (log.path / "commits" / f".{number}.crc").touch()

    assert log.committed == max(numbers)


@pytest.mark.spark
def test_what_spark_wrote_is_understood(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory(READING)
    app = timed(source)

    @app.table()
    def per_minute(readings: DataFrame) -> DataFrame:
        return readings.groupBy(F.window("at", "1 minute")).count()

    source.add(reading(1, "12:00:00"))
    source.add(reading(2, "12:30:00"))
    run(app, tmp_path)
    landing = CheckpointLog(tmp_path / "checkpoints" / "readings")
    log = CheckpointLog(tmp_path / "checkpoints" / "per_minute")

    assert (landing.planned, landing.committed) == (1, 1)
    assert landing.query_id != log.query_id
    assert log.operators == ("stateStoreSave",)
    assert log.planned == log.committed
    assert log.watermark_ms == moment("12:20:00").timestamp() * 1000 - 1
    forget_commit(tmp_path, "readings")
    assert (landing.planned, landing.committed) == (1, 0)


def test_changed_files_are_those_touched_after_they_were_read(tmp_path: Path) -> None:
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    names = ("same", "odd name %", "gone", "older")
    entries = []
    for name in names:
        (tmp_path / name).write_text("x")
        stamp = int(os.stat(tmp_path / name).st_mtime * 1000)
        url = f"file://{tmp_path}/{name}".replace("%", "%25").replace(" ", "%20")
        entries.append(json.dumps({"path": url, "timestamp": stamp, "batchId": 0}))
    (log / "0").write_text("\n".join(["v1", *entries[:2]]))
    (log / "1.compact").write_text("\n".join(["v1", *entries]))

    later = os.stat(tmp_path / "odd name %").st_mtime + 5
    os.utime(tmp_path / "odd name %", (later, later))
    os.utime(tmp_path / "older", (1, 1))
    (tmp_path / "gone").unlink()

    assert set(changed_files(tmp_path)) == {str(tmp_path / "odd name %")}
