"""Models that learn slices of rows in apps: merged over partitions, in a batch and in a stream."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises

import millstream as ms
from millstream.lake.home import Home
from millstream.learn import slices
from millstream.learn.stored import versions_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame

    from millstream.testing import Script

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Threshold:
    """The middle of the light with people and without."""

    def __init__(self, middle: float) -> None:
        self.middle = middle

    def __call__(self, rows: pd.DataFrame) -> pd.Series[bool]:
        return rows["light"] > self.middle


def threshold(model: Threshold | None, rows: pd.DataFrame) -> Threshold:
    """Learn where the middle is."""
    return Threshold(rows.groupby("occupied")["light"].mean().mean())


def rooms() -> ms.App:
    app = ms.App("rooms")

    @app.source(event_time="at", watermark="10 seconds")
    def readings() -> ms.Memory:
        return ms.Memory("room STRING, at TIMESTAMP, light DOUBLE, occupied BOOLEAN")

    @app.model(learner=ms.learn.NaiveBayes(), label="occupied", every="1 minute")
    def bayes(readings: DataFrame) -> DataFrame:
        return readings

    @app.model(
        learner=ms.learn.LogisticRegression(), label="occupied", features=["light"], every="20 s"
    )
    def logistic(readings: DataFrame) -> DataFrame:
        return readings

    @app.model(
        learner=ms.learn.KMeans(2, half_life="1 minute"), features=["light"], every="1 minute"
    )
    def lights(readings: DataFrame) -> DataFrame:
        return readings

    @app.model(learner=threshold, label="occupied", features=["light"], every="1 minute")
    def by_hand(readings: DataFrame) -> DataFrame:
        return readings

    return app


def send(s: Script, seconds: range, dice: random.Random) -> None:
    rows = []
    for second in seconds:
        lit = dice.random() < 0.5
        at = (NOON + timedelta(seconds=second)).isoformat()
        light = 100.0 + 200 * lit + dice.gauss(0, 20)
        rows.append({"room": "ab"[second % 2], "at": at, "light": light, "occupied": lit})
    dice.shuffle(rows)
    for row in rows:
        s.send("readings", **row)


def check_model(s: Script, home: Path, model: str) -> None:
    """Check what a model has learnt from all readings but the last ones."""
    newest, *_ = versions_of(Home.at(home).table(model))
    assert newest.version == "2026-01-01T12:04:00Z"
    assert newest.learnt == 236
    assert (newest.metrics["Accuracy"] or 0) > 0.95
    rows = s.table(model).rows("at", "_kind", "_learnt", "prediction", "occupied")
    scored = [row for row in rows if row[1] == "scored"]
    assert len(scored) == 237
    assert {row[2] for row in scored if row[0] < NOON + timedelta(minutes=1)} <= {0, 20, 40}
    right = [row[3] == row[4] for row in scored if row[2] and row[4] is not None]
    assert sum(right) > 0.95 * len(right)
    assert {row[0] for row in s.table(f"{model}__quarantine").rows("_raised")} == {
        "the feature 'light' is null",
        "'light' is 1e+200, which is too large to be added up",
    }


@pytest.mark.parametrize("few", [slices.FEW, 0])
def test_slices_are_scored_then_learnt_and_a_crash_changes_nothing(
    stream: Callable[..., Script], home: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(slices, "FEW", few)
    dice = random.Random(few)
    with stream(rooms(), home=home) as s:
        send(s, range(90), dice)
        s.batch()
        s.send("readings", room="a", at="12:01:31", light=None, occupied=True)
        s.send("readings", room="b", at="12:01:32", light=1e200, occupied=True)
        s.send("readings", room="b", at="12:01:33", light=310.0, occupied=None)
        send(s, range(94, 190), dice)
        s.crash(after="sink_commit", query="bayes")
        s.restart()
        send(s, range(190, 260), dice)
        s.crash(after="batch_staged", query="lights")
        s.restart()
        s.batch()
        s.batch()

        for model in ("bayes", "logistic", "by_hand"):
            check_model(s, home, model)
        clusters = s.table("lights").rows("prediction", "light", "_kind")
        assert {(row[0], row[1] > 200) for row in clusters if row[0] is not None} == {
            (0, False),
            (1, True),
        }
        s.assert_consistent()


def test_options_that_do_not_go_with_a_learner_are_refused(stream: Callable[..., Script]) -> None:
    from river import drift, metrics

    def app_of(**options: Any) -> ms.App:
        app = ms.App("rooms")

        @app.source(event_time="at", watermark="10 seconds")
        def readings() -> ms.Memory:
            return ms.Memory("room STRING, at TIMESTAMP, light DOUBLE, occupied BOOLEAN")

        @app.model(
            **{
                "learner": ms.learn.NaiveBayes(),
                "label": "occupied",
                "features": ["light"],
                **options,
            }
        )
        def model(readings: DataFrame) -> DataFrame:
            return readings

        return app

    adwin: Any = drift.ADWIN
    roc: Any = metrics.ROCAUC
    for options in (
        {"key": ["room"]},
        {"drift": adwin()},
        {"metrics": [roc()]},
        {"learner": ms.learn.KMeans(2)},
        {"label": None},
    ):
        with raises("MODEL_OPTION"), stream(app_of(**options)):
            pass
    for learner in (ms.learn.LinearRegression(), ms.learn.KMeans(2)):
        label = "occupied" if isinstance(learner, ms.learn.LinearRegression) else None
        with (
            raises("MODEL_COLUMN"),
            stream(app_of(learner=learner, label=label, features=["room"])),
        ):
            pass
