from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.apps import app_of, rows, run

from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rows_may_be_added_before_and_while_the_app_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory("id BIGINT")
    app = app_of(source)
    source.add({"id": 1})
    app.start(home=tmp_path)

    source.add({"id": 2}, {"id": 3})
    until = time.monotonic() + 60
    while len(rows(tmp_path, "readings", "id")) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    app.stop()

    assert rows(tmp_path, "readings", "id", "_batch") == [(1, 0), (2, 1), (3, 1)]


def test_every_call_of_add_is_one_batch_in_the_order_of_calls(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory("id BIGINT")
    for number in range(12):
        source.add({"id": number})

    run(app_of(source), tmp_path)

    assert [(a, b) for a, b in sorted(rows(tmp_path, "readings", "id", "_batch"))] == [
        (number, number) for number in range(12)
    ]


def test_times_may_be_given_as_python_says_them(spark: SparkSession, tmp_path: Path) -> None:
    source = Memory("at TIMESTAMP, day DATE")
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    source.add({"at": at, "day": at.date()})
    source.add()

    run(app_of(source), tmp_path)

    assert rows(tmp_path, "readings", "at", "day", "_batch") == [(at, at.date(), 0)]
