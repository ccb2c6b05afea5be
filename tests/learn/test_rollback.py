"""A model that is rolled back: as if what it learnt since had not been, in a stream and a batch."""

from __future__ import annotations

import copy
import json
import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from river import drift, tree
from tests.learn.lessons import BEGIN, LESSONS, SECOND_US, arrivals, learning_of
from tests.learn.test_learning import END_US, KEY, whole
from tests.learn.test_model import rooms, scored_rooms, send_minute

import millstream as ms
from millstream.lake.home import Home
from millstream.lake.rollback import (
    Rollback,
    ask_for_rollback,
    in_force,
    moment_of,
    place_rollback,
    read_rollbacks,
)
from millstream.learn.columns import ROLLED_BACK, SCORED, VERSION
from millstream.learn.learning import KeptModel, Return
from millstream.learn.pickled import canonical_bytes, digest_of
from millstream.learn.stored import versions_of
from millstream.views.model_comparison import ComparisonView
from millstream.views.models import ModelsView

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame

    from millstream.learn.learning import Learning
    from millstream.testing import Script

BEGIN_US = int(BEGIN.timestamp()) * SECOND_US


def by_hand(rows: list[tuple[Any, Any]], returns: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
    """Learn rows of one a second with River alone; return what is said of each, and the digests.

    Args:
        rows: The features and label of each second.
        returns: To the model as it was before a second, after another second.
    """
    learner, learnt = LESSONS[0].make(), 0
    models: dict[int, Any] = {}
    found: list[tuple[Any, ...]] = []
    for second, (x, y) in enumerate(rows):
        for to, after in returns:
            if after == second - 1:
                learner, learnt = copy.deepcopy(models[to])
        models[second] = copy.deepcopy((learner, learnt))
        found.append((learnt, str(learner.predict_one(x)).lower()))
        learner.learn_one(x, y)
        learnt += 1
    return [*found, (learnt, digest_of(canonical_bytes(learner)))]


def streamed(
    learning: Learning, rows: list[tuple[int, str]], chance: random.Random, count: int
) -> tuple[list[tuple[Any, ...]], list[Return]]:
    """Learn rows in random batches, some tried twice, rolling back between some of them."""
    cuts = sorted(chance.sample(range(1, len(rows)), 9))
    batches = [rows[a:b] for a, b in pairwise([0, *cuts, len(rows)])]
    back_before = set(chance.sample(range(3, len(batches)), count))
    answers: list[tuple[Any, ...]] = []
    returns: list[Return] = []
    packed, frontier = None, -math.inf
    for number, batch in enumerate([*batches, []]):
        versions = [a for a in answers if a[0] == VERSION]
        if number in back_before and versions:
            to = chance.choice(versions)
            models = {KEY: KeptModel(to[9], to[11], to[7])}
            at_us = int(frontier)
            returns.append(Return(len(returns) + 1, to[8], to[3], at_us, models))
            learning = replace(learning, returns=tuple(returns))
        chance.shuffle(batch)
        for _ in range(chance.choice((1, 2))):
            turn = learning.turn(KEY, packed, batch, frontier)
        packed = turn.packed
        answers += turn.answers
        to_come = [us for rows in batches[number + 1 :] for us, _ in rows]
        frontier = min(to_come, default=END_US) - 1
    return [*answers, *learning.turn(KEY, packed, (), END_US).answers], returns


@pytest.mark.parametrize("seed", range(12))
def test_a_model_goes_on_from_a_version_as_if_nothing_had_been_learnt_since(seed: int) -> None:
    chance = random.Random(seed)
    lesson = LESSONS[0]
    rows = arrivals(lesson)[:400]
    learning = learning_of(lesson, every_s=20)

    found, returns = streamed(learning, rows, chance, seed % 4)

    seconds = [(one.to_us, one.at_us) for one in returns]
    expected = by_hand(
        [row for row, _ in zip(lesson.rows(), rows, strict=False)],
        [tuple((us - BEGIN_US) // SECOND_US for us in pair) for pair in seconds],  # type: ignore[misc]
    )
    of_rows = [(a[7], a[4]) for a in sorted(found, key=lambda a: a[3]) if a[0] == SCORED]
    assert of_rows == expected[:-1]
    last = [a for a in found if a[0] == VERSION][-1]
    assert (last[7], last[10]) == expected[-1]
    assert [(a[8], a[3]) for a in found if a[0] == ROLLED_BACK] == [
        (one.to, one.at_us) for one in returns
    ]
    # In a batch, and in a table that is made again, models keep themselves what they go back to.
    alone = tuple(replace(one, models=None) for one in returns)
    again = replace(learning, returns=alone)
    assert whole(again, rows) == (found, [])


def test_metrics_and_the_detector_of_drift_begin_again() -> None:
    rows = arrivals(LESSONS[0])[:200]
    learning = learning_of(LESSONS[0])
    to, after = BEGIN_US + 100 * SECOND_US, BEGIN_US + 150 * SECOND_US
    to = -(-to // learning.every_us) * learning.every_us
    learning = replace(learning, returns=(Return(1, "to", to, after),))

    found, _ = whole(learning, rows)

    last = [a for a in found if a[0] == VERSION][-1]
    since = [a for a in found if a[0] == SCORED and a[3] > after]
    labels = [json.loads(text)["y"] for _, text in rows][-len(since) :]
    right = sum((a[4] == "true") is label for a, label in zip(since, labels, strict=True))
    assert json.loads(last[12])["Accuracy"] == pytest.approx(right / len(since))


def test_a_version_that_is_rolled_back_is_in_use_again_after_a_return_to_it() -> None:
    names = [f"2026-01-01T12:{minute:02}:00Z" for minute in range(9)]

    def back(number: int, to: int, at: int) -> Rollback:
        return Rollback(number, names[to], 0.0, moment_of(names[at]) + 1)

    first = back(1, 1, 3)
    assert in_force(names[:4], (first,)) == names[1]
    assert in_force(names[:5], (first,)) == names[4]
    # To one that had been rolled back, and to one after that.
    assert in_force(names[:5], (first, back(2, 3, 4))) == names[3]
    assert in_force(names[:6], (first, back(2, 4, 5))) == names[4]
    # A key without a version since: what it had when the other keys had that one.
    assert in_force(names[:4], (first, back(2, 4, 5))) == names[1]
    assert in_force([names[2]], (first,)) is None
    assert in_force([], (first,)) is None


def test_returns_are_numbered_in_order_and_placed_once(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "m"
    assert read_rollbacks(folder) == ()

    asked = [ask_for_rollback(folder, f"2026-01-01T12:0{n}:00Z") for n in range(3)]
    placed = place_rollback(folder, asked[1], 7)

    assert [one.number for one in asked] == [1, 2, 3]
    assert read_rollbacks(folder) == (asked[0], placed, asked[2])
    assert [file.name[0] for file in folder.iterdir()] == ["r"] * 3


def send_wrong(s: Script, minute: int, room: str = "a") -> None:
    """Send a minute of labels that are all wrong."""
    for number in range(6):
        at, lit = f"12:{minute:02}:{number * 10:02}", number % 2 == 1
        s.send("readings", room=room, at=at, light=100.0 * lit + number, occupied=not lit)


@pytest.mark.spark
def test_a_stream_goes_on_from_a_version_exactly_once_and_a_batch_gives_the_same(
    stream: Callable[..., Script], home: Path
) -> None:
    place = Home.at(home)
    with stream(rooms(), home=home) as s:
        for minute in range(2):
            send_minute(s, minute)
            s.batch()
        for minute in (2, 3):
            send_wrong(s, minute)
            send_wrong(s, minute, room="b")
            s.batch()
        s.batch()
        good = "2026-01-01T12:02:00Z"
        newest = versions_of(place.table("occupancy"))[0]
        assert newest.version > good

        for model in ("occupancy", "of_rooms"):
            ask_for_rollback(place.models / model, good)
        send_minute(s, 5)
        send_minute(s, 5, room="b")
        s.crash(after="sink_commit", query="occupancy")
        s.restart()
        s.batch()
        send_minute(s, 8)
        s.batch()
        s.batch()
        s.send("readings", room="b", at="12:09:50", light=100.0, occupied=None)
        s.batch()

        s.assert_consistent()
        assert_rolled_back(s, place, "occupancy", (), good, newest.version)
        assert_rolled_back(s, place, "of_rooms", ("room",), good, newest.version)


def assert_rolled_back(
    s: Script, place: Home, model: str, key: tuple[str, ...], to: str, gone: str
) -> None:
    [asked] = read_rollbacks(place.models / model)
    rows = s.table(model).rows("_kind", "room", "_version", "_learnt", "at")
    back = [row for row in rows if row[0] == "rolled_back"]
    assert {row[2:4] for row in back} <= {(to, 12), (to, 0)}
    assert len(back) == (2 if key else 1)
    assert {round(row[4].timestamp() * SECOND_US) for row in back} == {asked.at_us}
    found = versions_of(place.table(model), key, place.models / model)
    assert {one.state for one in found if one.version == gone} == {"rolled back"}
    assert found[0].state == "in use"


@pytest.mark.spark
def test_other_queries_score_with_the_version_before_the_model_learns_again(
    stream: Callable[..., Script], home: Path
) -> None:
    place = Home.at(home)
    with stream(scored_rooms(), home=home) as s:
        for minute in range(3):
            send_minute(s, minute)
            s.batch()
        s.batch()
        newest, older = (one.version for one in versions_of(place.table("occupancy"))[:2])
        s.send("readings", room="a", at="12:03:00", light=100.0, occupied=None)
        s.batch()
        s.batch()
        for model in ("occupancy", "of_rooms"):
            ask_for_rollback(place.models / model, older)
        s.batch()
        s.send("readings", room="a", at="12:03:10", light=100.0, occupied=None)
        s.batch()
        s.batch()

        for table in ("seen", "first"):
            scored = {
                row[0].minute * 60 + row[0].second: row[1]
                for row in s.table(table).rows("at", "version")
            }
            assert (scored[180], scored[190]) == (newest, older)


def two_models(scorer: str) -> ms.App:
    """A champion and a challenger, and a table that scores with the one that is named."""
    app = scored_rooms()

    @app.model(learner=tree.HoeffdingTreeClassifier(), label="occupied", every="1 minute")
    def challenger(readings: DataFrame) -> DataFrame:
        return readings.drop("room")

    if scorer == "occupancy":

        @app.table(name="judged")
        def by_champion(readings: DataFrame, occupancy: DataFrame) -> DataFrame:
            return ms.score(readings.drop("occupied"), occupancy)

    else:

        @app.table(name="judged")
        def by_challenger(readings: DataFrame, challenger: DataFrame) -> DataFrame:
            return ms.score(readings.drop("occupied"), challenger)

    return app


@pytest.mark.spark
def test_a_table_scores_with_another_model_by_its_name(
    stream: Callable[..., Script], home: Path
) -> None:
    with stream(two_models("occupancy"), home=home) as s:
        for minute in range(2):
            send_minute(s, minute)
            s.batch()
        s.batch()
        s.upgrade_to(two_models("challenger"))
        send_minute(s, 3)
        s.batch()
        s.batch()

        place = Home.at(home)
        [scorer] = [
            one for m in ModelsView.of(place, None, "challenger").models for one in m.scorers
        ]
        assert scorer.query == "judged"
        assert scorer.version is not None
        compared = ComparisonView.of(
            place, two_models("challenger").graph, "occupancy", "challenger"
        )
        assert compared.all.rows == compared.all.labelled > 6


@pytest.mark.spark
def test_drift_is_an_alert_of_the_app(stream: Callable[..., Script]) -> None:
    app = ms.App("drifts")

    @app.source(event_time="at", watermark="10 seconds")
    def readings() -> ms.Memory:
        return ms.Memory("at TIMESTAMP, light DOUBLE, occupied BOOLEAN")

    @app.model(
        learner=tree.HoeffdingTreeClassifier(),
        label="occupied",
        drift=drift.ADWIN(clock=1, grace_period=10, min_window_length=5),  # type: ignore[no-untyped-call]
        every="1 minute",
    )
    def watched(readings: DataFrame) -> DataFrame:
        return readings

    @app.alert(to=ms.Log(), key=["at"])
    def changed(watched: DataFrame) -> DataFrame:
        return watched.where("_drift").select("at", "_learnt")

    with stream(app) as s:
        for number in range(120):
            lit, at = number % 2 == 1, f"12:{number // 60:02}:{number % 60:02}"
            light = 100.0 * lit + number % 7
            s.send("readings", at=at, light=light, occupied=lit == (number < 60))
        s.send("readings", at="12:05:00", light=0.0, occupied=None)
        for _ in range(4):
            s.batch()

        [(learnt,), *_] = s.table("changed").rows("_learnt")
        assert 60 <= learnt < 90
