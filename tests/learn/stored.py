"""A home of an app with two models, as a stream would have written it, made without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake
from river import drift, tree
from tests.learn.lessons import LESSONS, SECOND_US, Lesson, arrivals, learning_of
from tests.learn.test_learning import END_US, KEY

from millstream.lake.home import Home
from millstream.lake.reference_data import BoundReference, ReferenceData

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.learn.learning import Learning

APP = """\
import millstream as ms
from river import drift, linear_model, preprocessing, tree

app = ms.App("phishing")


@app.source(event_time="at", watermark="10 seconds")
def sites() -> ms.Memory:
    return ms.Memory("at TIMESTAMP, y BOOLEAN, https DOUBLE")


@app.model(
    learner=preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    label="y",
    drift=drift.ADWIN(),
    every="1 minute",
)
def champion(sites):
    return sites


@app.model(learner=tree.HoeffdingTreeClassifier(), label="y", every="1 minute")
def challenger(sites):
    return sites


@app.table
def judged(sites, champion):
    return ms.score(sites.drop("y"), champion)
"""
"""The app that the home is of."""


def answers_of(learning: Learning, rows: list[tuple[int, str]]) -> list[tuple[Any, ...]]:
    return list(learning.turn(KEY, None, rows, END_US).answers)


def stored(answers: list[tuple[Any, ...]]) -> pa.Table:
    """Return answers as the table of a model has them."""
    texts = [json.loads(answer[2]) if answer[2] else {} for answer in answers]
    names = [name for name in texts[0] if name != "at"]
    measured = pa.map_(pa.string(), pa.float64())

    def at(us: int) -> datetime:
        return datetime.fromtimestamp(us / SECOND_US, UTC)

    def maps(number: int) -> list[Any]:
        found = [json.loads(a[number]) if a[number] else None for a in answers]
        return [list(one.items()) if one is not None else None for one in found]

    columns: dict[str, Any] = {
        "_kind": [answer[0] for answer in answers],
        "at": pa.array([at(answer[3]) for answer in answers], pa.timestamp("us", "UTC")),
        **{name: [text.get(name) for text in texts] for name in names},
        "prediction": [None if a[4] is None else a[4] == "true" for a in answers],
        "score": pa.array([answer[5] for answer in answers], pa.float64()),
        "_drift": pa.array([answer[6] for answer in answers], pa.bool_()),
        "_learnt": [answer[7] for answer in answers],
        "_version": [answer[8] for answer in answers],
        "_model": pa.array([answer[9] for answer in answers], pa.binary()),
        "_digest": [answer[10] for answer in answers],
        "_made_with": [answer[11] for answer in answers],
        "_metrics": pa.array(maps(12), measured),
        "_recent": pa.array(maps(13), measured),
    }
    return pa.table(columns)


def phishing() -> tuple[list[tuple[int, str]], Learning, Learning]:
    """Return rows whose labels mean the opposite after a while, and two models."""
    rows = arrivals(LESSONS[0])
    turned = [
        (us, json.dumps({**json.loads(text), "y": json.loads(text)["y"] == (number < 700)}))
        for number, (us, text) in enumerate(rows)
    ]
    champion = learning_of(LESSONS[0], every_s=60)
    detector = drift.ADWIN()  # type: ignore[no-untyped-call]
    champion = replace(champion, recipe=replace(champion.recipe, drift=detector))
    lesson = Lesson("tree", tree.HoeffdingTreeClassifier, LESSONS[0].data, LESSONS[0].metric)
    return turned, champion, learning_of(lesson, every_s=60)


@cache
def said() -> dict[str, list[tuple[Any, ...]]]:
    """Return what two models say of the rows, by their names."""
    rows, champion, challenger = phishing()
    return {"champion": answers_of(champion, rows), "challenger": answers_of(challenger, rows)}


def make_home(path: Path) -> Home:
    """Write the home of two models, of which one table scores with the first."""
    home = Home.at(path)
    home.prepare("phishing", sources=["sites"])
    for name, answers in said().items():
        write_deltalake(str(home.table(name)), stored(answers), partition_by=["_kind"])
    newest = max(answer[8] or "" for answer in said()["champion"])
    bound = BoundReference("model champion (1)", newest, 0.0, None, "")
    ReferenceData(home.references("judged")).write(0, {bound.name: bound})
    return home
