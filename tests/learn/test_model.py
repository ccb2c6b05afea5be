"""Models in apps: learnt in a batch and in a stream, with bad rows and crashes; and scoring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from river import linear_model, naive_bayes, preprocessing
from sklearn.linear_model import SGDClassifier
from tests.faults import raises
from tests.learn.lessons import LESSONS

import millstream as ms
from millstream.declare.dataset import model_of
from millstream.lake.home import Home
from millstream.learn.rows import learnt, scored_rows
from millstream.learn.stored import versions_of
from millstream.operators.build_context import BuildContext, calling

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.declare.options import ModelOptions
    from millstream.testing import Script

pytestmark = pytest.mark.spark


def rooms(learner: Any = None) -> ms.App:
    """Rooms: one model of all, one for each room, and readings scored by both."""
    app = ms.App("rooms")

    @app.source(event_time="at", watermark="10 seconds")
    def readings() -> ms.Memory:
        return ms.Memory("room STRING, at TIMESTAMP, light DOUBLE, occupied BOOLEAN")

    @app.model(
        learner=learner or preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        label="occupied",
        features=["light"],
        every="1 minute",
    )
    def occupancy(readings: DataFrame) -> DataFrame:
        return readings

    @app.model(learner=naive_bayes.GaussianNB(), label="occupied", key=["room"], every="1 minute")  # type: ignore[no-untyped-call]
    def of_rooms(readings: DataFrame) -> DataFrame:
        return readings

    @app.table
    def wrong(occupancy: DataFrame) -> DataFrame:
        return occupancy.where("prediction != occupied").select("room", "at", "score")

    return app


def scored_rooms() -> ms.App:
    app = rooms()

    @app.table
    def seen(readings: DataFrame, occupancy: DataFrame) -> DataFrame:
        return ms.score(readings.drop("occupied"), occupancy)

    @app.table
    def first(readings: DataFrame, of_rooms: DataFrame) -> DataFrame:
        return ms.score(readings.drop("occupied"), of_rooms)

    return app


def send_minute(s: Script, minute: int, room: str = "a") -> None:
    for number in range(6):
        lit = number % 2 == 1
        at = f"12:{minute:02}:{number * 10:02}"
        s.send("readings", room=room, at=at, light=100.0 * lit + number, occupied=lit)


def test_rows_are_scored_before_they_are_learnt_and_a_crash_changes_nothing(
    stream: Callable[..., Script], home: Path
) -> None:
    changed = rooms(linear_model.Perceptron())
    with stream(rooms(), home=home) as s:
        send_minute(s, 0)
        s.batch()
        s.send("readings", room="a", at="12:00:55", light=None, occupied=True)
        s.send("readings", room="b", at="12:01:20", light=90.0, occupied=None)
        s.crash(after="sink_commit", query="occupancy")
        s.restart()
        s.send("readings", room="b", at="12:03:20", light=90.0, occupied=None)
        s.batch()
        s.batch()

        rows = s.table("occupancy").rows("_kind", "_learnt", "prediction", "room")
        assert rows == [
            ("scored", 0, False, "a"),
            ("scored", 1, False, "a"),
            ("scored", 2, False, "a"),
            ("scored", 3, True, "a"),
            ("scored", 4, False, "a"),
            ("scored", 5, True, "a"),
            ("scored", 6, True, "b"),
            ("version", 6, None, None),
        ]
        assert s.table("occupancy__quarantine").rows("_raised") == [
            ("the feature 'light' is null",)
        ]
        assert len(s.table("wrong").rows()) == 1
        by_room = s.table("of_rooms").rows("_kind", "room", "_learnt")
        assert [row for row in by_room if row[0] == "version"] == [("version", "a", 6)]
        s.assert_consistent()
        [version] = versions_of(Home.at(home).table("occupancy"))
        assert (version.version, version.learnt) == ("2026-01-01T12:01:00Z", 6)
        assert version.metrics == {"Accuracy": pytest.approx(5 / 6)}
        assert version.made_with.startswith("river ")
        with raises("STATE_CHANGED", match="the learner was"):
            s.upgrade_to(changed)


def test_a_stream_scores_with_the_newest_version_from_the_next_batch_on(
    stream: Callable[..., Script],
) -> None:
    with stream(scored_rooms()) as s:
        send_minute(s, 0)
        s.batch()
        assert {row[0] for row in s.table("seen").rows("version")} == {None}
        send_minute(s, 2)
        s.batch()
        s.batch()
        s.send("readings", room="a", at="12:03:00", light=100.0, occupied=None)
        s.send("readings", room="b", at="12:03:01", light=100.0, occupied=None)
        s.send("readings", room="b", at="12:03:02", light=None, occupied=None)
        s.batch()

        last = [row for row in s.table("seen").rows("at", "prediction", "version") if row[2]]
        assert [row[1:] for row in last][-2:] == [(True, "2026-01-01T12:01:00Z")] * 2
        by_room = s.table("first").rows("room", "at", "prediction", "version")
        of_last = [(room, found, version) for room, at, found, version in by_room if at.minute == 3]
        assert of_last == [
            ("a", True, "2026-01-01T12:01:00Z"),
            ("b", None, None),
            ("b", None, None),
        ]


def test_a_batch_measures_what_rivers_own_loop_does(spark: SparkSession) -> None:
    lesson = LESSONS[0]
    rows = [
        json.dumps({"at": f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z", **x, "y": y})
        for n, (x, y) in enumerate(lesson.rows())
    ]
    names = next(lesson.rows())[0]
    schema = f"at TIMESTAMP, {', '.join(f'{name} DOUBLE' for name in names)}, y BOOLEAN"
    frame = spark.read.schema(schema).json(spark.sparkContext.parallelize(rows, 2))
    options: ModelOptions = {"learner": lesson.make, "label": "y", "every": "1 minute"}

    found = learnt(model_of(lambda rows: rows, options), frame)

    [last] = found.orderBy("_learnt", ascending=False).where("_kind = 'version'").head(1)
    assert last["_learnt"] == len(rows) - 1
    metric = lesson.metric()
    for row in found.where("_kind = 'scored'").orderBy("at").collect():
        metric.update(row["y"], {True: row["score"], False: 1 - row["score"]})
    assert metric.get() == pytest.approx(lesson.river(), abs=1e-9)


def test_models_trained_elsewhere_score_rows_too(spark: SparkSession) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1, 0.5D), (2, 9D), (3, NULL) AS t(id, x)")
    trained = SGDClassifier(random_state=1).fit([[0.0], [1.0], [8.0], [9.0]], [0, 0, 1, 1])

    by_sklearn = ms.score(rows, trained, features=["x"], returns="INT", version="v1")
    by_function = ms.score(rows, lambda frame: frame["x"] * 2, features=["x"])

    assert [tuple(row) for row in by_sklearn.orderBy("id").collect()] == [
        (1, 0.5, 0, None, "v1"),
        (2, 9.0, 1, None, "v1"),
        (3, None, None, None, None),
    ]
    assert [row["prediction"] for row in by_function.orderBy("id").collect()] == [1.0, 18.0, None]


def test_a_batch_scores_with_the_version_that_is_asked_for_or_not_at_all(
    spark: SparkSession,
) -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES ('a', 1), ('b', 2), ('a', 70), ('b', 80), ('a', 150) AS t(room, s)"
    ).selectExpr(
        "room",
        "timestamp_seconds(1767268800 + s) AS at",
        "s * 1D AS x",
        "s > 60 AS taken",
        "'x' AS bytes",
        "1 AS library",
    )

    def score(key: list[str], version: str | None, damaged: bool = False) -> list[Any]:
        options: ModelOptions = {
            "name": "m",
            "learner": linear_model.LogisticRegression(),
            "label": "taken",
            "features": ["x"],
            "key": key,
            "every": "1 minute",
        }
        model = model_of(lambda rows: rows, options)
        table = learnt(model, rows)
        if damaged:
            table = table.withColumn("_digest", F.lit("0"))
        with calling(BuildContext(models={"m": (model, table)})):
            found = ms.score(rows.drop("taken"), scored_rows("m", table), version=version)
        return sorted({row["version"] for row in found.collect()})

    for key in ([], ["room"]):
        first = "2026-01-01T12:01:00Z"
        assert score(key, "2026-01-01 12:01") == [first]
        assert score(key, None)[-1] == "2026-01-01T12:02:00Z"
        with raises("SCORE_REFUSED", match="has no version 2026-01-01T12:09:00Z"):
            score(key, "2026-01-01 12:09")
    with raises("MODEL_UNREADABLE", match="not those that were committed"):
        score([], None, damaged=True)


def test_labels_that_come_later_are_joined_and_learnt(stream: Callable[..., Script]) -> None:
    app = ms.App("later")

    @app.source(event_time="at", watermark="10 seconds")
    def readings() -> ms.Memory:
        return ms.Memory("id BIGINT, at TIMESTAMP, light DOUBLE")

    @app.source(event_time="known_at", watermark="10 seconds")
    def labels() -> ms.Memory:
        return ms.Memory("id BIGINT, known_at TIMESTAMP, occupied BOOLEAN")

    @app.model(
        learner=linear_model.LogisticRegression(),
        label="occupied",
        features=["light"],
        every="1 minute",
    )
    def occupancy(readings: DataFrame, labels: DataFrame) -> DataFrame:
        known = ms.join_within(readings, labels, on="id", within="1 minute", how="left")
        return known.select("id", "at", "light", "occupied")

    with stream(app) as s:
        for number in range(4):
            s.send("readings", id=number, at=f"12:00:{number:02}", light=float(number % 2))
            if number:
                s.send(
                    "labels", id=number, known_at=f"12:00:{number + 20}", occupied=number % 2 == 1
                )
        s.batch()
        for source in ("readings", "labels"):
            columns = {"light": 1.0} if source == "readings" else {"occupied": True}
            time = "at" if source == "readings" else "known_at"
            s.send(source, id=9, **{time: "12:05:00"}, **columns)
        s.batch()
        s.batch()
        s.batch()

        rows = s.table("occupancy").rows("_kind", "id", "occupied", "_learnt")
        assert rows == [
            ("scored", 0, None, 0),
            ("scored", 1, True, 0),
            ("scored", 2, False, 1),
            ("scored", 3, True, 2),
            ("version", None, None, 3),
        ]
        s.assert_consistent()


def test_columns_that_cannot_be_learnt_from_are_refused(spark: SparkSession) -> None:
    rows = spark.sql("SELECT TIMESTAMP '2026-01-01' AS at, 1.0D AS x, ARRAY(1) AS many, true AS y")

    def learnt_with(**options: Any) -> None:
        given: Any = {"learner": linear_model.LogisticRegression(), "label": "y", **options}
        learnt(model_of(lambda rows: rows, given), rows)

    for options in ({}, {"label": "z"}, {"key": "k"}, {"features": ["at"]}, {"event_time": "x"}):
        with raises("MODEL_COLUMN"):
            learnt_with(**options)
    learnt_with(features=["x"])


def test_what_is_no_model_is_refused(spark: SparkSession) -> None:
    rows = spark.range(3)

    with raises("SCORE_REFUSED"):
        ms.score(rows, rows)
    with raises("SCORE_REFUSED"):
        ms.score(rows, 7)
    with raises("SCORE_REFUSED"):
        ms.score(rows, lambda frame: frame)
    with raises("SCORE_REFUSED"):
        ms.score(rows, lambda frame: frame, features=["x"])
