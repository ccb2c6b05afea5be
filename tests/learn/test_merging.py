"""Learners whose statistics merge: equal however rows are grouped, and right."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from river import datasets, evaluate, linear_model, metrics, naive_bayes, preprocessing
from sklearn import linear_model as sk_linear
from sklearn.naive_bayes import GaussianNB

from millstream.learn import KMeans, LinearRegression, LogisticRegression, NaiveBayes
from millstream.learn.exact import exact_sum, totals_of
from millstream.learn.learner import Task
from millstream.learn.merging import Slice
from millstream.learn.pickled import canonical_bytes
from millstream.learn.taught import LEARNER, ROWS, Taught

if TYPE_CHECKING:
    from collections.abc import Sequence

    Rows = list[tuple[dict[str, Any], Any]]

LEARNERS: tuple[Any, ...] = (
    NaiveBayes(),
    LogisticRegression(half_life=500),
    LinearRegression(half_life="1 minute"),
    KMeans(3, half_life=200),
)


def learnt(learner: Any, rows: Rows, size: int, dice: random.Random | None = None) -> Taught:
    """Learn slices of rows; with dice, each in any order and in any parts."""
    taught = Taught(learner, {})
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        cuts = [0, len(part)]
        if dice is not None:
            dice.shuffle(part)
            cuts = sorted({0, len(part), *(dice.randrange(len(part)) for _ in range(4))})
        groups = [part[a:b] for a, b in itertools.pairwise(cuts)]
        totals = totals_of([summed(taught, group) for group in groups])
        own = {name[1]: total for name, total in totals.items() if name[0] == LEARNER}
        model = taught.model.after(own, Slice(int(totals[(ROWS,)]), 10.0))
        taught = taught.after(model, totals, 1000)
    return taught


def summed(taught: Taught, rows: Sequence[tuple[dict[str, Any], Any]]) -> Any:
    x = pd.DataFrame([features for features, _ in rows])
    task = taught.model.task
    return taught.sums(x, None if task is Task.CLUSTER else [y for _, y in rows], task)


def made_up(seed: int, count: int) -> Rows:
    """Make up rows of three kinds, with numbers of any size."""
    dice = random.Random(seed)
    rows: Rows = []
    for _ in range(count):
        kind = dice.randrange(3)
        x = {
            "a": dice.gauss(kind, 0.5) * 10 ** dice.choice((-3, 0, 3)),
            "b": dice.gauss(-kind, 0.1) + 1e6,
            "c": float(dice.random() < 0.2 + kind / 5),
        }
        rows.append((x, kind == 1))
    return rows


@given(st.lists(st.floats(-1e100, 1e100)), st.randoms())
def test_an_exact_sum_is_that_of_fractions_in_any_order(values: list[float], dice: Any) -> None:
    shuffled = dice.sample(values, len(values))

    assert sum(map(Fraction, exact_sum(values))) == sum(map(Fraction, values))
    assert exact_sum(shuffled) == exact_sum(values)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_model_is_the_same_to_the_byte_however_rows_are_grouped(learner: Any) -> None:
    for seed in range(10):
        expected = canonical_bytes(learnt(learner, made_up(seed, 120), 30))

        for other in range(5):
            dice = random.Random(other)
            found = canonical_bytes(learnt(learner, made_up(seed, 120), 30, dice))
            assert found == expected


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_row_is_scored_alike_beside_any_other_rows(learner: Any) -> None:
    taught = learnt(learner, made_up(1, 200), 50)
    rows = pd.DataFrame([x for x, _ in made_up(2, 100)])

    together = taught.scores(rows)
    alone = [taught.scores(rows[n : n + 1]) for n in range(len(rows))]

    assert [one for (one,), _ in alone] == list(together[0])
    assert [one for _, (one,) in alone] == list(together[1])


SCALED: Any = preprocessing.StandardScaler
TRUMP: Any = datasets.TrumpApproval
MAE: Any = metrics.MAE


@pytest.mark.parametrize(
    ("mine", "rivers", "data"),
    [
        (NaiveBayes(), naive_bayes.GaussianNB, datasets.Bananas),
        (NaiveBayes(), naive_bayes.GaussianNB, datasets.Phishing),
        (
            LogisticRegression(),
            lambda: SCALED() | linear_model.LogisticRegression(),
            datasets.Phishing,
        ),
    ],
    ids=["bayes-bananas", "bayes-phishing", "logistic-phishing"],
)
def test_a_merged_model_is_as_good_as_rivers_own_loop_within_a_hundredth(
    mine: Any, rivers: Any, data: Any
) -> None:
    made: Any = metrics.Accuracy
    expected = evaluate.progressive_val_score(data(), rivers(), made()).get()

    found = learnt(mine, list(data()), 10).measured([made()])[0]["Accuracy"]

    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("mine", "rivers", "data"),
    [
        (NaiveBayes(), naive_bayes.GaussianNB, datasets.ImageSegments),
        (
            LogisticRegression(),
            lambda: SCALED() | linear_model.LogisticRegression(),
            datasets.Bananas,
        ),
    ],
    ids=["bayes-images", "logistic-bananas"],
)
def test_where_it_is_not_as_good_it_is_better(mine: Any, rivers: Any, data: Any) -> None:
    made: Any = metrics.Accuracy
    expected = evaluate.progressive_val_score(data(), rivers(), made()).get()

    found = learnt(mine, list(data()), 10).measured([made()])[0]["Accuracy"]

    assert expected * 1.02 < found < expected * 1.10


def test_linear_regression_is_the_solution_of_least_squares_over_all_rows() -> None:
    rows = [(x, float(y)) for x, y in TRUMP()]
    bayesian = linear_model.BayesianLinearRegression()
    rivers = evaluate.progressive_val_score(TRUMP(), bayesian, MAE())

    taught = learnt(LinearRegression(l2=1e-6), rows, 10)

    x = np.array([[*x.values(), 1.0] for x, _ in rows])
    scale = x.std(axis=0) + x.mean(axis=0)
    solved = np.linalg.lstsq(x / scale, np.array([y for _, y in rows]), rcond=None)[0] / scale
    frame = pd.DataFrame([x for x, _ in rows])
    assert taught.scores(frame)[0] == pytest.approx((x @ solved).tolist(), abs=1e-4)
    assert learnt(LinearRegression(), rows, 10).measured([MAE()])[0]["MAE"] < rivers.get()


def test_logistic_regression_comes_to_that_of_scikit_learn() -> None:
    dice = np.random.default_rng(3)
    x = dice.normal(size=(20_000, 3)) * [1, 10, 0.1] + [0, 5, 0]
    odds = x @ [1.0, -0.1, 8.0] + 0.3
    y = dice.random(20_000) < 1 / (1 + np.exp(-odds))
    rows = [
        (dict(zip("abc", row, strict=True)), bool(one))
        for row, one in zip(x.tolist(), y, strict=True)
    ]
    theirs = sk_linear.LogisticRegression().fit(x, y)

    taught = learnt(LogisticRegression(), rows, 500)

    found = [taught.model.weights[name] for name in ("a", "b", "c", "")]
    assert found == pytest.approx([*theirs.coef_[0], theirs.intercept_[0]], rel=0.1, abs=0.05)


def test_naive_bayes_has_the_probabilities_of_scikit_learn() -> None:
    bananas: Any = datasets.Bananas
    rows = list(bananas())
    x, y = pd.DataFrame([x for x, _ in rows]), [y for _, y in rows]
    theirs = GaussianNB().fit(x.to_numpy(), y)

    predictions, chances = learnt(NaiveBayes(), rows, 100).scores(x)

    expected = theirs.predict_proba(x.to_numpy())[:, 1].tolist()
    assert chances == pytest.approx(expected, abs=1e-3)
    for prediction, chance in zip(predictions, expected, strict=True):
        assert prediction == (chance > 0.5) or abs(chance - 0.5) < 1e-3


def test_texts_are_counted_and_have_weights_of_their_own() -> None:
    dice = random.Random(5)
    rows: Rows = []
    for _ in range(4000):
        ad = dice.choice(("boots", "coffee", "lamps"))
        rows.append(({"ad": ad}, dice.random() < {"boots": 0.1, "coffee": 0.5, "lamps": 0.8}[ad]))
    rates = {
        ad: sum(y for x, y in rows if x["ad"] == ad) / sum(x["ad"] == ad for x, _ in rows)
        for ad in ("boots", "coffee", "lamps")
    }
    asked = pd.DataFrame({"ad": [*rates, "new"]})

    for learner in (NaiveBayes(), LogisticRegression()):
        chances = learnt(learner, rows, 200).scores(asked)[1]
        assert chances[:3] == pytest.approx([*rates.values()], abs=0.02)
        assert 0 < (chances[3] or 0) < 1


@pytest.mark.parametrize("half_life", [600, "1 minute"])
def test_k_means_finds_planted_centres_that_move(half_life: Any) -> None:
    for seed in range(4):
        dice = random.Random(seed)
        places = [(0.0, 0.0), (20.0, 0.0), (0.0, 20.0), (20.0, 20.0)]
        drift = [(dice.uniform(-8, 8), dice.uniform(-8, 8)) for _ in places]
        rows: Rows = []
        for number in range(12_000):
            (x, y), (dx, dy) = places[number % 4], drift[number % 4]
            gone = number / 12_000
            point = {"x": x + dx * gone + dice.gauss(0, 1), "y": y + dy * gone + dice.gauss(0, 1)}
            rows.append((point, None))

        model = learnt(KMeans(4, half_life=half_life, seed=seed), rows, 100).model

        for (x, y), (dx, dy) in zip(places, drift, strict=True):
            near = min(math.dist(centre, (x + dx, y + dy)) for centre in model.centres)
            assert near < 1.0
