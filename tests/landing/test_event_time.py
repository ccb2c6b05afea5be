from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tests.apps import rows, run
from tests.graphs import source

from millstream.app import App
from millstream.build.checks import event_time_faults
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.landing import land
from millstream.landing.event_time import in_arrow, in_spark, within_years
from millstream.model.schema import Schema
from millstream.systems.memory.source import Memory
from millstream.trial.preview import try_out
from millstream.trial.sample import SampleBounds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.spark

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp()) * 1000
SHARED = "timestamp_millis(m.ts)"
"""Evaluated twice, Spark computes it once, ahead of the whole expression."""


def reader(connector: Memory) -> Callable[[], Memory]:
    return lambda: connector


def app_with_times() -> tuple[App, dict[str, Memory]]:
    made: dict[str, Memory] = {
        "simple": Memory("id INT, ts BIGINT"),
        "joined": Memory("id INT, day STRING, hour STRING"),
        "nested": Memory("id INT, m STRUCT<ts: BIGINT>"),
        "live": Memory("id INT, day STRING"),
    }
    times: dict[str, Any] = {
        "simple": "timestamp_millis(ts)",
        "joined": {"at": "to_timestamp(day || ' ' || hour, 'yyyy-MM-dd HH')"},
        "nested": {"at": f"greatest({SHARED}, {SHARED} - INTERVAL 1 SECOND)"},
        "live": {"at": "to_timestamp(day)"},
    }
    app = App("times")
    for name, time in times.items():
        options: Any = {"event_time": time, "watermark": "1 minute", "live": name == "live"}
        app.source(name=name, **options)(reader(made[name]))
    app.table(name="kept", mode="append")(lambda live: live.withColumn("m", F.minute("at")))
    return app, made


def test_an_event_time_is_computed_and_judged_when_a_row_lands(
    spark: SparkSession, tmp_path: Path
) -> None:
    app, made = app_with_times()
    made["simple"].add({"id": 1, "ts": NOON_MS})
    made["simple"].add({"id": 2, "ts": NOON_MS - 60_001}, {"id": 3}, {"id": 4, "ts": 2**62}, "x")
    made["joined"].add(
        {"id": 1, "day": "2026-05-01", "hour": "12"}, {"id": 2, "day": "2026-05-01", "hour": "99"}
    )
    made["nested"].add({"id": 1, "m": {"ts": NOON_MS}}, {"id": 2, "m": {"ts": 2**62}})
    made["live"].add({"id": 1, "day": "2026-05-01"}, {"id": 2, "day": "soon"})

    run(app, tmp_path)

    lost = "event time 'event_time' is null: timestamp_millis(ts) gives no time"
    before = "event_time is 2026-05-01 11:58:59.999, before the watermark 2026-05-01 11:59:00"
    assert rows(tmp_path, "simple", "id", "event_time", "_verdict", "_reason") == [
        (1, NOON, "ok", None),
        (2, datetime(2026, 5, 1, 11, 58, 59, 999_000, UTC), "late", before),
        (3, None, "malformed", lost),
        (4, None, "malformed", lost),
        (None, None, "malformed", "not JSON: invalid character (byte 0)"),
    ]
    assert rows(tmp_path, "joined", "id", "at", "_verdict") == [
        (1, NOON, "ok"),
        (2, None, "malformed"),
    ]
    assert rows(tmp_path, "nested", "id", "at", "_verdict") == [
        (1, NOON, "ok"),
        (2, None, "malformed"),
    ]
    assert rows(tmp_path, "kept", "id", "at", "m") == [(1, NOON.replace(hour=0), 0)]
    assert all(entry.is_balanced for entry in read_ledger(Home.at(tmp_path)).sources)

    fresh = SampleBounds(rows=5, sample=5, fresh=True)
    shown = try_out(app.graph, "joined", spark, Home.at(tmp_path / "none"), fresh).shown
    assert [(row.id, row.at) for row in shown.collect()] == [(1, NOON.replace(tzinfo=None))]


@pytest.mark.parametrize("rules", [{}, {"id is small": "id < 9"}], ids=["plain", "with rules"])
def test_spark_computes_a_batch_only_if_a_text_is_of_no_usual_form(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: dict[str, str]
) -> None:
    asked = []

    def counted(expression: str, right: Column) -> Column:
        asked.append(expression)
        return in_spark(expression, right)

    monkeypatch.setattr(land, "in_spark", counted)
    made, app = Memory("id INT, day STRING, clock STRING"), App("times")
    text = "to_timestamp(day || ' ' || clock)"
    app.source(name="logs", event_time={"at": text}, watermark="1 hour", expect=rules)(reader(made))

    def land_rows(*clocks: str | None) -> list[tuple[Any, ...]]:
        made.add(*({"id": 1, "day": "2026-05-01", "clock": clock} for clock in clocks), "x")
        run(app, tmp_path)
        assert all(entry.is_balanced for entry in read_ledger(Home.at(tmp_path)).sources)
        return rows(tmp_path, "logs", "clock", "at", "_verdict")

    usual = land_rows("12:00:00", "11:00:00", "10:59:59.999", None)
    assert asked == []
    after = land_rows("11:30:00", "9:1:2", "soon")
    assert len(asked) == 1

    def noon(hour: int, minute: int = 0, second: int = 0, micros: int = 0) -> datetime:
        return NOON.replace(hour=hour, minute=minute, second=second, microsecond=micros)

    first: list[tuple[Any, ...]] = [
        (None, None, "malformed"),
        (None, None, "malformed"),
        ("10:59:59.999", noon(10, 59, 59, 999_000), "ok"),
        ("11:00:00", noon(11), "ok"),
        ("12:00:00", NOON, "ok"),
    ]
    second = [
        (None, None, "malformed"),
        ("11:30:00", noon(11, 30), "ok"),
        ("9:1:2", noon(9, 1, 2), "late"),
        ("soon", None, "malformed"),
    ]
    assert usual == sorted(first, key=str)
    assert after == sorted([*first, *second], key=str)


KINDS: dict[str, list[Any]] = {
    "BIGINT": [0, 1, -1, 2**63 - 1, -(2**63), 253_402_300_799_999, 253_402_300_800, NOON_MS],
    "INT": [0, 2**31 - 1, -(2**31)],
    "DOUBLE": [0.0, -0.5, 1.5e9, 1e300, float("nan"), float("inf"), 253_402_300_800.0],
    "FLOAT": [0.0, -0.5, 1.5e9],
    "DATE": [date.min, date.max],
    "TIMESTAMP_NTZ": [datetime.fromisoformat("0001-01-01"), datetime.fromisoformat("9999-12-31")],
    "TIMESTAMP": [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), NOON],
}
SIMPLE = [
    ("timestamp_seconds(c)", ("BIGINT", "INT", "DOUBLE", "FLOAT")),
    ("Timestamp_Millis( `c` )", ("BIGINT", "INT")),
    ("timestamp_micros(c)", ("BIGINT", "INT")),
    ("CAST(c AS TIMESTAMP)", tuple(KINDS)),
]


def values_of(kind: str, dice: random.Random) -> list[Any]:
    made: dict[str, Any] = {
        "BIGINT": lambda: dice.randrange(-(2 ** dice.randrange(64)), 2 ** dice.randrange(64)),
        "INT": lambda: dice.randrange(-(2**31), 2**31),
        "DOUBLE": lambda: dice.uniform(-1, 1) * 10 ** dice.randrange(14),
        "FLOAT": lambda: pa.scalar(dice.uniform(-1e9, 1e9), pa.float32()).as_py(),
    }
    return [*KINDS[kind], None, *(made[kind]() for _ in range(300) if kind in made)]


def computed_by_spark(frame: DataFrame, expression: str) -> list[Any]:
    return (
        frame.select(in_spark(expression, F.lit(True)).alias("at"))
        .toArrow()["at"]
        .combine_chunks()
        .cast(pa.int64())
        .to_pylist()
    )


@pytest.mark.parametrize(("expression", "kinds"), SIMPLE)
def test_simple_expressions_give_in_arrow_what_spark_gives(
    spark: SparkSession, expression: str, kinds: tuple[str, ...]
) -> None:
    for kind in kinds:
        schema = Schema.parse(f"c {kind}")
        frame = spark.createDataFrame(
            [(v,) for v in values_of(kind, random.Random(kind))], schema.to_ddl()
        )
        compute = in_arrow(expression, schema)
        assert compute is not None
        [batch] = frame.toArrow().combine_chunks().to_batches()

        found = within_years(compute(batch)).cast(pa.int64()).to_pylist()

        wanted = within_years(
            pa.array(computed_by_spark(frame, expression)).cast(pa.timestamp("us"))
        )
        assert found == wanted.cast(pa.int64()).to_pylist(), kind


def test_what_is_not_a_time_of_one_record_is_refused(spark: SparkSession) -> None:
    def why(expression: str) -> str:
        connector = Memory("id INT, ts BIGINT, tags ARRAY<TIMESTAMP>")
        computed = source(
            "s", connector=connector, event_time="at", event_time_from=expression, watermark="1 s"
        )
        return " / ".join(str(fault.what) for fault in event_time_faults(computed, spark))

    assert why("timestamp_millis(ts)") == ""
    assert "`tts` cannot be resolved" in why("timestamp_millis(tts)")
    assert "is bigint, not timestamp" in why("ts * 1000")
    assert "needs more than one record" in why("max(timestamp_millis(ts))")
    assert "needs more than one record" in why("explode(tags)")
    assert "needs more than one record" in why("lag(timestamp_millis(ts)) OVER (ORDER BY id)")
    assert "gives another time when a record is read again" in why("now() - make_interval(id)")
    assert "gives another time" in why("timestamp_seconds(ts + rand())")
    assert "reads no column" in why("TIMESTAMP '2026-01-01'")
    assert "Spark refuses" in why("timestamp_millis(ts")
