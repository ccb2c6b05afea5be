from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.apps import forget_commit, rows, run, timed

from millstream.model.schema import Schema
from millstream.systems.generator.source import Generator

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DUE = datetime(2026, 5, 1, 12, tzinfo=UTC)
COLUMNS = "id BIGINT, at TIMESTAMP, speed DOUBLE, tags ARRAY<STRING>"


def records(generator: Generator, count: int) -> list[str]:
    schema = Schema.parse(generator.schema)
    return [
        generator.record(n, DUE + timedelta(seconds=n / generator.rate), schema)
        for n in range(count)
    ]


def test_the_same_seed_makes_the_same_records_and_another_seed_others() -> None:
    first, again, other = (Generator(COLUMNS, seed=seed, event_time="at") for seed in (1, 1, 2))

    assert records(first, 50) == records(again, 50)
    assert records(first, 50) != records(other, 50)


def test_shares_are_as_they_were_set() -> None:
    generator = Generator(
        COLUMNS, event_time="at", late=0.1, future=0.05, malformed=0.2, duplicate=0.1
    )

    made = records(generator, 4000)

    found = Counter[str]()
    for number, text in enumerate(made):
        found["duplicate"] += number > 0 and text == made[number - 1]
        try:
            happened = datetime.fromisoformat(json.loads(text)["at"])
        except ValueError:
            found["malformed"] += 1
            continue
        found["late"] += happened < DUE
        found["future"] += happened > DUE + timedelta(days=1)
    shares = {name: round(count / len(made), 2) for name, count in found.items()}
    assert shares == {
        "duplicate": pytest.approx(0.1, abs=0.03),
        "malformed": pytest.approx(0.2, abs=0.03),
        "late": pytest.approx(0.1, abs=0.03),
        "future": pytest.approx(0.05, abs=0.02),
    }


def test_a_function_may_make_the_columns() -> None:
    def make(dice: Any, number: int) -> dict[str, Any]:
        return {"id": number, "speed": dice.choice([1.5, 2.5])}

    made = [json.loads(text) for text in records(Generator(COLUMNS, make=make), 20)]

    assert [record["id"] for record in made] == list(range(20))
    assert {record["speed"] for record in made} == {1.5, 2.5}


@pytest.mark.spark
def test_made_up_records_land_with_the_verdicts_they_were_made_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    app = timed(
        Generator(COLUMNS, rate=100, event_time="at", future=0.1, malformed=0.2, duplicate=0.1)
    )
    run(app, tmp_path)
    time.sleep(1.5)
    run(app, tmp_path)
    before = rows(tmp_path, "readings")

    forget_commit(tmp_path, "readings")
    events = run(app, tmp_path)

    assert not [event for event in events if event.kind == "differs"]
    landed = rows(tmp_path, "readings", "_position", "_verdict")
    assert sorted(position for position, _ in landed) == list(range(len(landed)))
    assert set(map(str, before)) <= set(map(str, rows(tmp_path, "readings")))
    verdicts = Counter(verdict for _, verdict in landed)
    assert len(landed) >= 100
    assert set(verdicts) == {"ok", "future", "malformed"}
    assert verdicts["malformed"] / len(landed) == pytest.approx(0.2, abs=0.12)
