from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.apps import READING, reading, rows, run, timed
from tests.faults import raises

from millstream.lake.home import Home
from millstream.repair.repair import rebuild
from millstream.systems.memory.source import Memory
from millstream.trial.rehearse import rehearse

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.app import App

pytestmark = pytest.mark.spark

FAST = "SELECT id, at, speed FROM readings WHERE speed > 1"
EVEN = "SELECT id, at, speed FROM readings WHERE id % 2 = 0"
SLOW = "SELECT id, speed FROM {} WHERE speed < 4"
BOTH = "SELECT id, speed FROM {} UNION ALL SELECT id, speed FROM {}"


def declared(source: Memory, *, fast: str, slow: str, both: str) -> App:
    app = timed(source)
    app.sql(fast, FAST)
    app.sql("even", EVEN)
    app.sql("slow", slow)
    app.sql("both", both)
    return app


def refused(app: App, home: Path, spark: SparkSession) -> list[str]:
    """Have an app refused by a check, and by a run with the first of the same words."""
    found = rehearse(app.graph, spark, Home.at(home))
    with raises("INPUTS_CHANGED") as caught:
        run(app, home)
    assert str(caught.value) == str(found[0])
    return [error.what for error in found]


def test_an_input_that_was_renamed_added_or_swapped_is_found_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Memory(READING)
    for number in range(1, 5):
        source.add(reading(number, "12:00:00", speed=float(number)))
    slow, both = SLOW.format("fast"), BOTH.format("fast", "even")
    first = declared(source, fast="fast", slow=slow, both=both)
    run(first, tmp_path)
    source.add(reading(5, "12:00:00", speed=5.0))
    run(first, tmp_path)

    wider = f"{slow} UNION ALL SELECT id, speed FROM even"
    swapped = BOTH.format("even", "fast")
    renamed = declared(
        source, fast="quick", slow=SLOW.format("quick"), both=BOTH.format("quick", "even")
    )
    found = refused(declared(source, fast="fast", slow=wider, both=swapped), tmp_path, spark)
    found += refused(renamed, tmp_path, spark)
    for name in ("slow", "both"):
        rebuild(renamed.graph, Home.at(tmp_path), name, agreed=True)
    run(renamed, tmp_path)

    assert found == [
        "'slow' read fast and now reads fast, even",
        "'both' read fast, even and now reads even, fast",
        "'slow' read fast and now reads quick",
        "'both' read fast, even and now reads quick, even",
    ]
    assert rows(tmp_path, "slow", "id") == [(2,), (3,)]
    assert rows(tmp_path, "both", "id") == [(2,), (2,), (3,), (4,), (4,), (5,)]
