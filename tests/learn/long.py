"""Models on many random runs: equal to the batch, whatever arrives when and whatever crashes.

python -m tests.learn.long --runs 200 --seed 1 --json bench/results/models.json

Runs are added to those that the file has.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from river import linear_model, preprocessing

import millstream as ms
from millstream.settings import resolve_master
from millstream.spark.session import open_session
from millstream.testing.course import arrivals_of
from millstream.testing.property import prove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AT_A_TIME = 10
"""Runs on the same rows."""


def rooms() -> ms.App:
    """A model of each way to learn: by key, and by sums of slices."""
    app = ms.App("rooms")

    @app.source(event_time="at", watermark="20 seconds")
    def readings() -> ms.Memory:
        return ms.Memory("room STRING, at TIMESTAMP, light DOUBLE, occupied BOOLEAN")

    scaler: Any = preprocessing.StandardScaler

    @app.model(
        learner=scaler() | linear_model.LogisticRegression(),
        label="occupied",
        features=["light"],
        key=["room"],
        every="20 seconds",
    )
    def of_rooms(readings: DataFrame) -> DataFrame:
        return readings

    @app.model(learner=ms.learn.NaiveBayes(), label="occupied", every="20 seconds")
    def bayes(readings: DataFrame) -> DataFrame:
        return readings

    @app.model(
        learner=ms.learn.KMeans(2, half_life="20 seconds"), features=["light"], every="10 seconds"
    )
    def lights(readings: DataFrame) -> DataFrame:
        return readings

    return app


def few_readings(dice: random.Random) -> list[dict[str, Any]]:
    """Make up readings of a minute; some have no label, or a feature that is null."""
    rows = []
    for number in range(14):
        is_lit = dice.random() < 0.5
        light = dice.gauss(100 + 200 * is_lit, 30)
        rows.append(
            {
                "room": dice.choice("ab"),
                "at": f"12:00:{dice.randrange(60):02d}",
                "light": None if number == 5 else light,
                "occupied": None if number == 7 else is_lit,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    spark = open_session("models", master=resolve_master(None, code=None).value)
    file: Path | None = given.json
    known = json.loads(file.read_text()) if file and file.exists() else {}
    done, app = 0, rooms()
    while done < given.runs:
        began, seed = time.monotonic(), given.seed * 1000 + done
        arrivals = arrivals_of(app.graph, {"readings": few_readings(random.Random(seed))})
        runs = min(_AT_A_TIME, given.runs - done)
        proof = prove(app, arrivals, spark, runs=runs, seed=seed)
        done += proof.runs
        happened = Counter(proof.happened) + Counter(known.get("happened", {}))
        known = {
            "runs": known.get("runs", 0) + proof.runs,
            "seconds": known.get("seconds", 0) + round(time.monotonic() - began),
            "happened": dict(sorted(happened.items())),
        }
        if file:
            file.write_text(json.dumps(known, indent=2) + "\n")
        print(f"{done} runs held", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
