"""How models learn, without Spark: as River's own loop does, however the rows arrive."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.types import StructType
from river import cluster, compose, datasets, drift, linear_model, metrics, preprocessing
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from tests.faults import raises
from tests.learn.lessons import AT, LESSONS, UNSUPERVISED, Lesson, arrivals, learning_of

from millstream.learn import stored as versions
from millstream.learn.columns import SCORED, VERSION
from millstream.learn.learner import (
    Measured,
    PartialFit,
    Predictor,
    Scored,
    Task,
    as_label,
    task_of,
)
from millstream.learn.pickled import (
    canonical_bytes,
    check_digest,
    digest_of,
    made_with,
    read_model,
)
from millstream.learn.scoring import PARTS, Scoring, TrainedElsewhere, Versioned
from millstream.learn.versions import ModelReference
from millstream.operators.state.codec import StateCodec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.learn.learning import Learning

LABELS = {"bool": "boolean", "int32": "integer"}
"""Types of Arrow, as Spark names them."""
END_US = 2**52
KEY = '{"of":"it"}'
Answer = tuple[Any, ...]


def rmse() -> Any:
    return metrics.RMSE()  # type: ignore[no-untyped-call]


class Fragile:
    """A learner that raises on some rows after it has changed."""

    def __init__(self) -> None:
        self.rows = 0

    def predict_one(self, x: dict[str, Any]) -> bool:
        """Predict what depends on how many rows were learnt."""
        return self.rows % 3 == 0

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        """Count the row, and raise."""
        self.rows += 1
        if x["https"] == 99.0:
            raise ArithmeticError


def run(
    learning: Learning, rows: Sequence[tuple[int, str]], chance: random.Random
) -> tuple[list[Answer], list[str]]:
    """Learn rows in batches that are cut anywhere, some late by a batch, some batches tried twice.

    The frontier never passes a row that is still to come.
    """
    cuts = sorted(chance.sample(range(1, len(rows)), chance.randint(1, 12)))
    edges = [0, *cuts, len(rows)]
    batches = [list(rows[a:b]) for a, b in itertools.pairwise(edges)]
    for batch, after in itertools.pairwise(batches):
        late = [row for row in batch if chance.random() < 0.3]
        batch[:] = [row for row in batch if row not in late]
        after.extend(late)
    answers: list[Answer] = []
    raised: list[str] = []
    packed, frontier = None, -math.inf
    for number, batch in enumerate(batches):
        chance.shuffle(batch)
        for _ in range(chance.choice((1, 1, 2))):
            turn = learning.turn(KEY, packed, batch, frontier)
        packed = turn.packed
        answers += turn.answers
        raised += [row.traceback for row in turn.raised]
        to_come = [us for rows in batches[number + 1 :] for us, _ in rows]
        frontier = min(to_come, default=END_US) - 1
    turn = learning.turn(KEY, packed, (), END_US)
    return [*answers, *turn.answers], [*raised, *(row.traceback for row in turn.raised)]


def scored(learning: Learning, learner: Any, rows: Sequence[Any], label: str) -> list[Any]:
    """Score rows as one batch of Arrow."""
    recipe = learning.recipe
    version = ("2026-01-01T00:00:00Z", canonical_bytes(learner), made_with(learner))
    model = Versioned(recipe.features, recipe.task, recipe.is_yes_or_no, "m", AT, version)
    typed: Any = pa
    kinds = {"prediction": label, "score": "float64", "version": "string"}
    kind = typed.struct([(name, typed.type_for_alias(alias)) for name, alias in kinds.items()])
    found: Any = Scoring(model, kind, LABELS[label]).scored(typed.array(rows), [])
    return [row["prediction"] for row in found.to_pylist()]


def whole(learning: Learning, rows: Sequence[tuple[int, str]]) -> tuple[list[Answer], list[str]]:
    """Learn all rows at once."""
    turn = learning.turn(KEY, None, rows, END_US)
    return [*turn.answers], [row.traceback for row in turn.raised]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_model_measures_what_rivers_own_loop_does(lesson: Lesson) -> None:
    answers, raised = whole(learning_of(lesson), arrivals(lesson))

    last = [answer for answer in answers if answer[0] == VERSION][-1]
    measured = json.loads(last[12])[type(lesson.metric()).__name__]
    assert raised == []
    assert last[7] == len(arrivals(lesson)) == sum(a[0] == SCORED for a in answers)
    assert measured == pytest.approx(lesson.river(), abs=1e-9)


def test_metrics_over_the_last_rows_are_those_of_these_rows_alone() -> None:
    for seed in range(50):
        chance = random.Random(seed)
        rows: list[tuple[float, float]] = []
        measured = Measured([rmse()], 100)
        for number in range(300):
            rows.append((chance.gauss(0, 1e6 if number < 20 else 1e-2), 0.0))
            measured.update(rows[-1][0], Scored(rows[-1][1], None))
        alone = rmse()
        for y, prediction in rows[-100:]:
            alone.update(y, prediction)

        assert measured.values(measured.recent) == {"RMSE": alone.get()}


def test_yes_and_no_are_whole_numbers_where_the_label_is_one() -> None:
    def numbered() -> Any:
        return ((x, int(y)) for x, y in datasets.Phishing())

    lesson = Lesson("numbered", LESSONS[0].make, numbered, LESSONS[0].metric)
    learning = learning_of(lesson)
    learner = lesson.make()
    for x, y in itertools.islice(lesson.rows(), 100):
        learner.learn_one(x, y)

    answers, raised = whole(learning, arrivals(lesson)[:100])

    assert raised == []
    assert {answer[4] for answer in answers if answer[0] == SCORED} == {"0", "1"}
    found = scored(learning, learner, [x for x, _ in itertools.islice(lesson.rows(), 100)], "int32")
    assert set(found) == {0, 1}
    assert {*map(type, found)} == {int}
    assert {as_label(True, "boolean"), as_label(False, "string")} == {True, "false"}
    assert as_label("yes", "string") == "yes"


def logarithm(x: dict[str, float]) -> dict[str, float]:
    return {"h": math.log(x["a"])}


@pytest.mark.parametrize(
    "first",
    [
        lambda: compose.FuncTransformer(logarithm),
        lambda: compose.FuncTransformer(logarithm) + preprocessing.StandardScaler(),
        lambda: preprocessing.StandardScaler() + preprocessing.FeatureHasher(seed=1),
        lambda: preprocessing.StandardScaler() + preprocessing.MinMaxScaler(),
        lambda: preprocessing.StandardScaler() * preprocessing.StandardScaler(),
    ],
)
def test_pipelines_with_steps_for_single_rows_score_batches(first: Any) -> None:
    learner = first() | preprocessing.StandardScaler() | linear_model.LogisticRegression()
    rows = [{"a": 1.0 + number} for number in range(9)]
    for number, x in enumerate(rows):
        learner.learn_one(x, number % 3 == 0)
    learning = learning_of(LESSONS[0])
    learning = replace(learning, recipe=replace(learning.recipe, features=("a",)))

    found = scored(learning, learner, rows, "bool")

    assert found == [learner.predict_one(x) for x in rows]


def test_a_prediction_does_not_depend_on_the_other_rows_of_its_batch() -> None:
    rows: list[Any] = [{"c": 2**53 + 1}, {"c": 1}, {"c": None}, {"c": 7}]
    model = TrainedElsewhere(lambda frame: list(map(str, frame["c"])), ("c",), "v")
    typed: Any = pa
    kind = typed.struct([("p", typed.string()), ("s", typed.float64()), ("v", typed.string())])

    scoring = Scoring(model, kind, "string")
    together: Any = scoring.scored(typed.array(rows), [])
    alone: Any = [scoring.scored(typed.array([row]), []) for row in rows[:2]]

    assert [row["p"] for row in together.to_pylist()] == ["9007199254740993", "1", None, "7"]
    assert [one.to_pylist()[0]["p"] for one in alone] == ["9007199254740993", "1"]


@pytest.mark.parametrize(
    ("estimator", "task"),
    [
        (SGDRegressor(), Task.NUMBER),
        (MLPRegressor(), Task.NUMBER),
        (SGDClassifier(), Task.CLASS),
        (GaussianNB(), Task.CLASS),
    ],
)
def test_what_an_estimator_of_scikit_learn_predicts_does_not_depend_on_the_label(
    estimator: Any, task: Task
) -> None:
    learner = PartialFit(estimator, ())

    assert task_of(learner, has_label=True, is_number=False) is task
    assert task_of(learner, has_label=True, is_number=True) is task
    assert task_of(learner, has_label=False, is_number=False) is Task.CLUSTER


def test_a_detector_of_drift_gets_the_distance_whatever_the_type_of_the_label() -> None:
    class Heard:
        drift_detected = False
        values: ClassVar[list[float]] = []

        def update(self, value: float) -> None:
            self.values.append(value)

    learning = learning_of(LESSONS[0])
    for task in (Task.NUMBER, Task.CLASS):
        recipe = replace(learning.recipe, task=task, metrics=(), drift=Heard())
        recipe.measured().update(5, Scored(5.5, None))

    assert Heard.values == [0.5, 1]


def test_a_row_that_cannot_be_learnt_is_refused_and_the_model_is_as_if_it_had_never_come() -> None:
    lesson = LESSONS[0]
    rows = arrivals(lesson)[:120]
    (first, text), (second, other), (third, last) = rows[10], rows[50], rows[90]
    bad = [
        (first + 1, text.replace('"y": true', '"y": "NaN"').replace('"y": false', '"y": 7')),
        (second + 1, json.dumps({**json.loads(other), "https": None})),
        (third + 1, json.dumps({**json.loads(last), "https": "NaN"})),
    ]
    learning = learning_of(lesson)
    expected, _ = whole(learning, rows)

    found, raised = whole(learning, [*rows, *bad])

    assert found == expected
    why = [text.splitlines()[-1] for text in raised]
    assert [text for text in why if text.startswith("the")] == [
        "the feature 'https' is null",
        "the feature 'https' is nan",
    ]
    assert len(raised) == 3


def test_a_learner_that_raises_in_the_middle_of_a_row_has_not_learnt_it() -> None:
    lesson = Lesson("fragile", Fragile, LESSONS[0].data, LESSONS[0].metric)
    rows = arrivals(lesson)[:60]
    good = [row for number, row in enumerate(rows) if (number + 1) % 20]
    bad = [row for number, row in enumerate(rows) if not (number + 1) % 20]
    spoilt = [(us, json.dumps({**json.loads(text), "https": 99.0})) for us, text in bad]
    learning = learning_of(lesson)
    expected, _ = whole(learning, good)

    found, raised = run(learning, sorted([*good, *spoilt]), random.Random(1))

    assert [answer for answer in found if answer[0] == SCORED] == [
        answer for answer in expected if answer[0] == SCORED
    ]
    assert len(raised) == len(bad)


class Greedy:
    """A learner that runs out of memory, here or where a row is predicted."""

    def predict_one(self, x: dict[str, Any]) -> bool:
        """Predict nothing."""
        raise MemoryError

    learn_one = predict_one


def test_a_worker_out_of_memory_does_not_quarantine_the_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(codec: StateCodec, text: str) -> Any:
        raise MemoryError

    rows = arrivals(LESSONS[0])[:1]
    greedy = Lesson("greedy", Greedy, LESSONS[0].data, LESSONS[0].metric)

    with pytest.raises(MemoryError):
        whole(learning_of(greedy), rows)
    monkeypatch.setattr(StateCodec, "row", read)
    with pytest.raises(MemoryError):
        whole(learning_of(LESSONS[0]), rows)


# Of a class that has not come yet.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: SGDClassifier(loss="log_loss", random_state=1),
        lambda: SGDClassifier(average=True, random_state=1),
        lambda: Perceptron(random_state=1),
        GaussianNB,
        lambda: MLPClassifier(hidden_layer_sizes=(3,), random_state=1),
        lambda: SGDRegressor(random_state=1),
    ],
)
def test_estimators_of_scikit_learn_are_equal_to_the_byte_however_rows_arrive(make: Any) -> None:
    lesson = Lesson("estimator", make, LESSONS[0].data, LESSONS[0].metric)
    rows = arrivals(lesson)[:250]
    learning = learning_of(lesson, classes=() if "Regr" in str(make()) else (False, True))

    digests = set()
    for seed in range(8):
        answers, raised = run(learning, rows, random.Random(seed))
        assert raised == []
        digests.add(tuple(answer[10] for answer in answers if answer[0] == VERSION))

    assert len(digests) == 1
    assert len(*digests) == 3


def test_a_label_that_is_none_of_the_classes_is_refused() -> None:
    learning = learning_of(LESSONS[2], classes=(True,))

    answers, raised = whole(learning, arrivals(LESSONS[2])[:50])

    assert {why.splitlines()[-1] for why in raised} == {"the label False is none of True"}
    assert sum(answer[0] == SCORED for answer in answers) == 50 - len(raised)


def test_a_model_of_another_library_or_with_other_bytes_is_refused() -> None:
    learning = learning_of(LESSONS[0])
    packed = learning.turn(KEY, None, arrivals(LESSONS[0])[:9], END_US).packed
    memory = learning.codec.unpack(packed)
    state: Any = memory.state
    state.made_with = "river 0.1.0"

    with raises("MODEL_UNREADABLE", match=r"river 0\.1\.0 wrote it"):
        learning.turn(KEY, learning.codec.pack(memory), arrivals(LESSONS[0])[9:12], END_US)
    with raises("MODEL_UNREADABLE"):
        read_model(b"\x80\x05nothing", "", of="m", at=AT)
    with raises("MODEL_UNREADABLE"):
        check_digest(b"other", digest_of(b"bytes"), of="m", at=AT)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_rows_are_scored_together_as_they_are_one_by_one(lesson: Lesson) -> None:
    learning, learner = learning_of(lesson), lesson.make()
    rows = list(itertools.islice(lesson.rows(), 200))
    for x, y in rows:
        learner.learn_one(x, y)
    recipe = learning.recipe
    version = ("2026-01-01T00:00:00Z", canonical_bytes(learner), made_with(learner))
    facts = (recipe.features, recipe.task, recipe.is_yes_or_no, lesson.name, AT, version)
    predict = Predictor(learner, recipe.task, recipe.is_yes_or_no)
    frame = pd.DataFrame([x for x, _ in rows])
    frame.loc[3, recipe.features[0]] = None

    found = Versioned(*facts).score(frame)

    expected = [predict(x) for x, _ in rows]
    expected[3] = Scored(None, None)
    versions = [None if n == 3 else version[0] for n in range(len(rows))]
    assert found.versions == versions
    if recipe.task is Task.NUMBER:
        assert found.predictions[4:] == pytest.approx([one.prediction for one in expected[4:]])
    else:
        assert found.predictions == [one.prediction for one in expected]
        assert found.scores[4:] == pytest.approx([one.score for one in expected[4:]])


def test_rows_with_columns_of_any_name_are_scored_each_by_the_version_that_it_brings() -> None:
    learner: Any = linear_model.LinearRegression()
    learner.learn_one({"bytes": 1.0, "library": 2.0}, 3.0)
    packed = canonical_bytes(learner)
    brought = ("v1", packed, made_with(learner), digest_of(packed))
    rows = pd.DataFrame([{"bytes": 1.0, "library": 2.0}] * 2)
    rows[[*PARTS]] = [brought, (None,) * 4]
    model = Versioned(("bytes", "library"), Task.NUMBER, False, "m", AT)

    found = model.score(rows)

    assert found.predictions == [learner.predict_one({"bytes": 1.0, "library": 2.0}), None]
    assert found.versions == ["v1", None]
    rows[PARTS.digest] = digest_of(b"other")
    with raises("MODEL_UNREADABLE", match="not those that were committed"):
        model.score(rows)


def test_a_new_version_is_read_without_the_bytes_of_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recorded(*args: Any) -> pa.Table:
        table = stored(*args)
        read.append(table.nbytes)
        return table

    read: list[int] = []
    stored = versions.stored_versions
    for number in range(20):
        packed = bytes([number]) * 100_000
        row: dict[str, Any] = {
            "k": "ab"[number % 2],
            "_kind": "version",
            "_version": f"v{number:02}",
        }
        row |= {"_learnt": number, "_model": packed, "_digest": digest_of(packed)}
        row |= {"_made_with": "river 1", "_metrics": None, "_recent": None}
        kinds: Any = {"_metrics": pa.string(), "_recent": pa.string()}
        one = {name: pa.array([value], kinds.get(name)) for name, value in row.items()}
        write_deltalake(tmp_path, pa.table(one), mode="append")
    monkeypatch.setattr(versions, "stored_versions", recorded)
    reference = ModelReference(
        "m", str(tmp_path), lambda spark: spark.range(0), None, AT, ("k",), None, StructType()
    )

    newest = reference.chosen("v16")
    listed = versions.versions_of(tmp_path, ["k"])

    assert {row[:2]: row[2][:1] for row in newest} == {("a", "v16"): b"\x10", ("b", "v15"): b"\x0f"}
    assert [one.size for one in listed] == [100_000] * 20
    assert listed[0].version == "v19"
    assert sum(read) < 300_000
    with raises("SCORE_REFUSED", match="has no version v99"):
        reference.chosen("v99")


def test_drift_is_noticed_after_labels_have_changed_their_meaning() -> None:
    lesson = Lesson("turned", LESSONS[0].make, LESSONS[0].data, LESSONS[0].metric)
    rows = arrivals(lesson)
    turn = len(rows) // 2
    turned = [
        (us, json.dumps({**json.loads(text), "y": json.loads(text)["y"] == (number < turn)}))
        for number, (us, text) in enumerate(rows)
    ]
    learning = learning_of(lesson)
    detector = drift.ADWIN()  # type: ignore[no-untyped-call]
    learning = replace(learning, recipe=replace(learning.recipe, drift=detector))

    steady, _ = whole(learning, rows)
    found, _ = run(learning, turned[:800], random.Random(4))

    assert [answer for answer in steady if answer[6]] == []
    [first, *_] = [answer[7] for answer in found if answer[6]]
    assert turn < first < turn + 150


def test_clusters_follow_centres_that_move() -> None:
    learning = learning_of(UNSUPERVISED[0], labelled=False)
    chance, centres = random.Random(3), [(-9.0, 0.0), (9.0, 0.0), (0.0, 9.0)]
    at, rows = json.loads(arrivals(UNSUPERVISED[0])[0][1])["at"], []
    for number in range(1500):
        x, y = centres[number % 3]
        moved = {"x1": x + chance.gauss(0, 0.3) + number / 300, "x2": y + chance.gauss(0, 0.3)}
        rows.append((number, json.dumps({"at": at, **moved, "y": False})))
    kmeans = partial(cluster.KMeans, n_clusters=3, halflife=0.3, mu=0, sigma=5, seed=4)
    learning = replace(learning, recipe=replace(learning.recipe, make=kmeans))

    packed = learning.turn(KEY, None, rows, END_US).packed

    state: Any = learning.codec.unpack(packed).state
    found = pickle.loads(state.model).centers
    for x, y in centres:
        near = min(math.dist((x + 5, y), (c["x1"], c["x2"])) for c in found.values())
        assert near < 0.6


def test_what_a_model_goes_by_is_described_alike_in_every_process() -> None:
    for lesson in (*LESSONS, *UNSUPERVISED):
        one, other = (learning_of(lesson).recipe.facts() for _ in range(2))
        assert one == other
        assert " at 0x" not in str(one)
    facts = learning_of(LESSONS[0]).recipe.facts()
    assert "LogisticRegression" in facts["the learner"]
    assert facts["what is measured"] == "ROCAUC, Accuracy, and over 50 rows"


def test_estimators_of_scikit_learn_learn_row_by_row() -> None:
    def make() -> Any:
        return SGDClassifier(loss="log_loss", random_state=3)

    lesson = Lesson("sgd", make, LESSONS[0].data, LESSONS[0].metric)
    rows, expected, alone = arrivals(lesson)[:100], [], make()
    learning = learning_of(lesson, classes=(False, True))
    for number, (x, y) in enumerate(itertools.islice(lesson.rows(), 100)):
        features = [[float(value) for value in x.values()]]
        if number:
            expected.append(str(alone.predict(features)[0]).lower())
        alone.partial_fit(features, [y], classes=[False, True])

    answers, raised = run(learning, rows, random.Random(2))

    assert raised == []
    assert [answer[4] for answer in answers if answer[0] == SCORED] == [None, *expected]


@pytest.mark.parametrize("lesson", [*LESSONS, *UNSUPERVISED], ids=lambda lesson: lesson.name)
def test_a_model_is_the_same_to_the_byte_however_its_rows_arrive(lesson: Lesson) -> None:
    same_however_rows_arrive(lesson, range(3))


@pytest.mark.long
@pytest.mark.parametrize("lesson", [*LESSONS, *UNSUPERVISED], ids=lambda lesson: lesson.name)
def test_a_model_is_the_same_on_many_random_arrivals(lesson: Lesson) -> None:
    same_however_rows_arrive(lesson, range(3, 23))


def same_however_rows_arrive(lesson: Lesson, seeds: range) -> None:
    rows = arrivals(lesson)[:300]
    learning = learning_of(lesson, labelled=lesson in LESSONS)
    expected, _ = whole(learning, rows)
    assert sum(a[0] == VERSION for a in expected) >= 3

    for seed in seeds:
        chance = random.Random(seed)
        found, raised = run(learning, rows, chance)
        assert raised == []
        if lesson.is_exact:
            assert found == expected
        assert [answer[:5] for answer in found] == [answer[:5] for answer in expected]
