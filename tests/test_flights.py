"""The flights of a whole year: every table equals that of DuckDB, as a stream and as a batch."""

from __future__ import annotations

import json
import runpy
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.lake.home import Home
from millstream.loading import load
from millstream.testing import assert_prefix_consistent
from millstream.trial.batch import run_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parent.parent / "examples/flights"
REPLAY = runpy.run_path(str(EXAMPLE / "replay.py"))
TEST = runpy.run_path(str(EXAMPLE / "test_app.py"))

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_year_as_a_stream_and_as_a_batch_is_that_of_duckdb(
    folder: Path, spark: SparkSession
) -> None:
    year = REPLAY["days"](date(2013, 1, 1), 365)
    REPLAY["write"](folder / "build/flights", year, 7)
    for source in TEST["SOURCES"]:
        closing = folder / "build/flights" / source / "closing.json"
        closing.write_text(json.dumps(TEST["CLOSING"]))
    app, home = load(str(EXAMPLE / "app.py")), Home.at(folder / "home")

    app.run(home=home.path, once=True)

    expected, streamed = TEST["finished"](year, folder), TEST["stored"](home)
    aircraft = TEST["served"](folder / "flights.db")
    assert TEST["differences"](expected, {**streamed, "aircraft": aircraft}) == {}
    assert streamed["departed"].num_rows > 336_776
    run_batch(app.graph, spark, home, Home.at(folder / "batch"))
    assert TEST["differences"](expected, TEST["stored"](Home.at(folder / "batch"))) == {}


def test_flights_of_a_few_aircraft_are_prefix_consistent(spark: SparkSession) -> None:
    arrived = REPLAY["arrivals"](REPLAY["days"](date(2013, 7, 10), 2), 7)
    few = sorted({str(m["tail"]) for _, _, m in arrived if m.get("tail")})[::40]
    rows: dict[str, list[Any]] = {source: [] for source in TEST["SOURCES"]}
    for _, source, message in arrived:
        if message.get("tail", few[0]) in few:
            rows[source].append(message)

    assert all(len(messages) > 20 for messages in rows.values())
    assert_prefix_consistent(load(str(EXAMPLE / "app.py")), rows, runs=10, spark=spark)
