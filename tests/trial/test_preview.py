from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.apps import READING, reading, run, timed
from tests.faults import raises

import millstream as ms
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


class Numbers:
    def earliest(self) -> dict[str, int]:
        return {"n": 0}

    def latest(self, start: Any) -> dict[str, int]:
        return {"n": 5}

    def read(self, start: Any, end: Any) -> list[str]:
        return [json.dumps({"n": n}) for n in range(start["n"], end["n"])]


def test_a_preview_is_a_batch_over_a_sample_and_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,speed\n1,50\n2,999\nthree,3\n")
    (tmp_path / "b.csv").write_text("id,speed\n4,70\n")
    app = ms.App("fleet", home=tmp_path / "home")
    connector = ms.Files(
        str(tmp_path / "*.csv"),
        format="csv",
        schema="id INT, speed DOUBLE",
        csv=ms.CsvOptions(header=True),
    )
    app.source(name="readings")(lambda: connector)
    app.sql("clean", "SELECT * FROM readings", expect={"plausible": "speed < 250"})
    app.sql_view("fast", "SELECT id, speed FROM clean WHERE speed > 60")
    app.sql("lost", "SELECT * FROM nowhere")
    spark.range(3).createOrReplaceTempView("clean")

    preview = app.preview("fast", rows=1)

    assert repr(preview).splitlines() == [
        "+---+-----+",
        "| id|speed|",
        "+---+-----+",
        "|  4| 70.0|",
        "+---+-----+",
        "clean: 1 row violates 'plausible': quarantined",
        "readings: 4 records sampled from Files: 3 ok, 1 malformed",
        f"  malformed at {tmp_path}/a.csv:4: expected int, got 'three', in column 'id': three,3",
    ]
    assert "<tr><td>4</td><td>70.0</td></tr>" in preview._repr_html_()
    assert "only showing top 1 row" in repr(app.preview("clean", rows=1))
    assert preview.frame.count() == 1
    assert spark.table("clean").count() == 3
    assert not (tmp_path / "home").exists()
    spark.catalog.dropTempView("clean")
    with raises("UNKNOWN_INPUT"):
        app.preview("lost")


def test_every_source_that_can_be_asked_again_is_sampled(
    spark: SparkSession, tmp_path: Path
) -> None:
    app = ms.App("fleet", home=tmp_path / "home")
    memory = Memory("id BIGINT")
    memory.add({"id": 1}, "{")
    memory.add({"id": 2})
    schema = "id BIGINT, at TIMESTAMP"
    made = ms.Generator(schema, rate=7, event_time="at", malformed=0.2, future=0.1)
    app.source(name="made", event_time="at", watermark="1 minute")(lambda: made)
    app.source(name="counted", expect={"even": "value % 2 = 0"})(lambda: ms.Rate(2))
    app.source(name="added")(lambda: memory)
    app.source(name="asked")(lambda: ms.Custom(Numbers(), schema="n BIGINT"))
    app.source(name="posted")(lambda: ms.Http(7403, schema="n BIGINT"))

    previews = {n: app.preview(n, sample=20) for n in ("made", "counted", "added", "asked")}

    assert {n: p.samples[0].verdicts for n, p in previews.items()} == {
        "made": {"ok": 13, "future": 2, "malformed": 5},
        "counted": {"ok": 10, "rejected": 10},
        "added": {"ok": 2, "malformed": 1},
        "asked": {"ok": 5},
    }
    assert [row.id for row in previews["added"].frame.collect()] == [1, 2]
    assert previews["counted"].samples[0].aside[0].reason == "violates 'even'"
    assert len(memory._waiting) == 2
    with raises("NOT_SAMPLED"):
        app.preview("posted")


def test_what_has_landed_is_looked_at_unless_it_has_other_columns_or_is_not_wanted(
    spark: SparkSession, tmp_path: Path
) -> None:
    memory = Memory(READING)
    memory.add(reading(1, "12:00:00"), "{")
    app = timed(memory)
    run(app, tmp_path)
    memory.add(reading(2, "12:00:01"))

    def reported(app: ms.App, **options: Any) -> str:
        return repr(app.preview("readings", **options)).splitlines()[-2]

    assert reported(app) == "readings: 1 landed row, of 1 ok, 1 malformed"
    assert reported(app, fresh=True) == "readings: 3 records sampled from Memory: 2 ok, 1 malformed"
    other = ms.App("fleet", home=tmp_path)
    other.source(name="readings")(lambda: ms.Generator("id STRING"))
    assert other.preview("readings", sample=20).samples[0].verdicts == {"ok": 20}


def test_what_a_function_raises_in_a_preview_is_reported_as_in_a_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    memory = Memory(READING)
    memory.add(reading(1, "12:00:00"))
    app = timed(memory)

    @app.view
    def broken(readings: DataFrame) -> DataFrame:
        return readings.select(F.udf(lambda speed: speed / 0)("speed"))

    with raises("UDF_RAISED") as caught:
        app.preview("broken")

    assert "'broken' applies to its rows raises ZeroDivisionError: " in caught.value.what
