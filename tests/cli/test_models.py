"""`millstream models`, on the table of a model, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.learn.stored import (
    APP,
    make_home,
    phishing as phishing_rows,
    said as said_by_models,
)

from millstream.lake.home import Home
from millstream.lake.rollback import (
    ask_for_rollback,
    moment_of,
    place_rollback,
    read_rollbacks,
)
from millstream.observe.history import History

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

MEASURED = pa.map_(pa.string(), pa.float64())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with the versions of a model, and a row that it has scored."""
    home = Home.at(tmp_path / "home")
    home.prepare("rooms", sources=["readings"])
    rows = pa.table(
        {
            "_kind": ["scored", "version", "version"],
            "_learnt": [0, 10, 1250],
            "_version": [None, "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"],
            "_model": pa.array([None, b"one", b"another"], pa.binary()),
            "_digest": [None, "a" * 64, "b" * 64],
            "_made_with": [None, "river 0.26.1", "river 0.26.1"],
            "_metrics": pa.array([None, [("Accuracy", 0.5)], [("Accuracy", None)]], MEASURED),
            "_recent": pa.array([None, [("Accuracy", 0.75)], []], MEASURED),
        }
    )
    write_deltalake(str(home.table("occupancy")), rows, partition_by=["_kind"])
    return home.path


def test_versions_are_listed_the_newest_first(
    place: Path, millstream: Callable[..., Outcome]
) -> None:
    outcome = millstream("models", "--home", str(place))

    assert outcome.code == 0, outcome.err
    _, newest, oldest, *_, count = outcome.out.splitlines()
    assert newest.split()[:6] == ["occupancy", "2026-01-01T13:00:00Z", "in", "use", "1", "250"]
    assert "Accuracy -" in newest
    assert "Accuracy 0.5000" in oldest
    assert "Accuracy 0.7500" in oldest
    assert count.startswith("  2 versions of 1 model: ")


def test_versions_are_given_to_programs_too(
    place: Path, millstream: Callable[..., Outcome]
) -> None:
    outcome = millstream("models", "occupancy", "--home", str(place), "--json")

    [model] = json.loads(outcome.out)["models"]
    assert [version["version"] for version in model["versions"]] == [
        "2026-01-01T13:00:00Z",
        "2026-01-01T12:00:00Z",
    ]
    assert model["versions"][1]["size"] == 3


def test_a_model_that_does_not_exist_is_refused(
    place: Path, millstream: Callable[..., Outcome]
) -> None:
    outcome = millstream("models", "ocupancy", "--home", str(place))

    assert outcome.code == 2
    assert "a model of the home: did you mean 'occupancy'? occupancy" in outcome.err


@pytest.fixture
def phishing(tmp_path: Path, millstream: Callable[..., Outcome]) -> Home:
    """The app of two models, in the current folder, and its home."""
    Path("app.py").write_text(APP)
    return make_home(tmp_path / ".millstream" / "phishing")


def test_a_model_is_rolled_back_once_somebody_has_agreed(
    phishing: Home, millstream: Callable[..., Outcome]
) -> None:
    words = ("models", "app.py", "champion", "--roll-back", "2026-01-01 00:10")

    refused = millstream(*words)
    done = millstream(*words, "--yes")

    assert refused.code == 2
    assert "[ROLLBACK_NOT_AGREED] the model 'champion' would go on from" in refused.err
    assert "2026-01-01T00:10:00Z, and forget 650 rows" in refused.err
    assert done.code == 0, done.err
    [asked] = read_rollbacks(phishing.models / "champion")
    assert (asked.to, asked.at_us) == ("2026-01-01T00:10:00Z", None)
    with History.read_only(phishing.history) as history:
        [event] = history.events()
    assert (event.kind, event.dataset) == ("model_rolled_back", "champion")
    assert "champion rolled back to 2026-01-01T00:10:00Z" in millstream("models").out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("champion", "--roll-back", "2026-01-01 00:59"), "did you mean '2026-01-01T00:"),
        (("champion", "--roll-back", "best"), "a version of champion"),
        (("--roll-back", "2026-01-01 00:10"), "the name of a model: challenger, champion"),
        (("champoin", "--roll-back", "2026-01-01 00:10"), "did you mean 'champion'"),
        (("--compare", "champion", "chalenger"), "did you mean 'challenger'"),
    ],
)
def test_what_cannot_be_rolled_back_or_compared_is_refused(
    phishing: Home, millstream: Callable[..., Outcome], words: tuple[str, ...], why: str
) -> None:
    outcome = millstream("models", "app.py", *words, "--yes")

    assert outcome.code == 2
    assert why in outcome.err
    assert read_rollbacks(phishing.models / "champion") == ()


def test_versions_that_were_rolled_back_are_marked_and_the_one_in_use_too(
    phishing: Home, millstream: Callable[..., Outcome]
) -> None:
    folder, to = phishing.models / "champion", "2026-01-01T00:10:00Z"
    place_rollback(folder, ask_for_rollback(folder, to), moment_of("2026-01-01T00:14:30Z"))
    first = json.loads(millstream("models", "champion", "--json").out)["models"][0]
    later = moment_of("2026-01-01T00:40:00Z")
    place_rollback(folder, ask_for_rollback(folder, "2026-01-01T00:15:00Z"), later)
    second = json.loads(millstream("models", "champion", "--json").out)["models"][0]

    states = {one["version"][11:16]: one["state"] for one in first["versions"]}
    assert [name for name, state in states.items() if state == "rolled back"] == [
        *("00:14", "00:13", "00:12", "00:11"),
    ]
    assert states["00:21"] == "in use"
    again = {one["version"][11:16]: one["state"] for one in second["versions"]}
    assert (again["00:15"], again["00:21"], again["00:13"]) == (
        *("in use", "rolled back", "rolled back"),
    )
    assert [one["to"] for one in second["rollbacks"]] == [to, "2026-01-01T00:15:00Z"]


def test_two_models_are_compared_on_the_rows_that_both_have_scored(
    phishing: Home, millstream: Callable[..., Outcome]
) -> None:
    every = [json.loads(text)["y"] for _, text in sorted(phishing_rows()[0])]
    texts = [[a[4] for a in answers if a[0] == "scored"] for answers in said_by_models().values()]
    # A model that has learnt nothing predicts nothing.
    both = [n for n in range(len(every)) if all(side[n] is not None for side in texts)]
    labels, said = [every[n] for n in both], [[side[n] == "true" for n in both] for side in texts]
    words = ("models", "app.py", "--compare", "champion", "challenger")

    outcome, text = millstream(*words, "--json"), millstream(*words)

    found = json.loads(outcome.out)
    for span, count in (("all", len(labels)), ("last", 1000)):
        a, b, y = said[0][-count:], said[1][-count:], labels[-count:]
        assert (found[span]["rows"], found[span]["labelled"]) == (count, count)
        assert found[span]["differ"] == sum(one != other for one, other in zip(a, b, strict=True))
        for side, mine, other in zip(found[span]["sides"], (a, b), (b, a), strict=True):
            right = [one == label for one, label in zip(mine, y, strict=True)]
            others = [one == label for one, label in zip(other, y, strict=True)]
            assert side["metrics"]["accuracy"] == pytest.approx(sum(right) / count)
            assert side["better"] == sum(r and not o for r, o in zip(right, others, strict=True))
    assert f"they differ on {found['all']['differ']}" in text.out.replace("\u202f", "")


def test_status_shows_how_good_models_are(
    phishing: Home, millstream: Callable[..., Outcome]
) -> None:
    as_text, as_json = millstream("status", "app.py"), millstream("status", "app.py", "--json")

    champion, challenger = json.loads(as_json.out)["models"]
    assert (champion["version"], champion["models"]) == ("2026-01-01T00:21:00Z", 1)
    assert champion["learnt"] == 1250
    assert champion["drifts"] == 2
    assert challenger["drifts"] == 0
    assert f"Accuracy {champion['recent']['Accuracy']:.4f}" in as_text.out


def test_status_of_an_app_without_models_does_not_look_for_any(
    tmp_path: Path, millstream: Callable[..., Outcome]
) -> None:
    Path("app.py").write_text("import millstream as ms\napp = ms.App('plain')\n")
    Home.at(tmp_path / ".millstream" / "plain").prepare("plain", sources=[])

    assert "model" not in millstream("status", "app.py").out
