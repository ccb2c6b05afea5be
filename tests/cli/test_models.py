"""`millstream models`, on the table of a model, without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millstream.lake.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    assert newest.split()[:4] == ["occupancy", "2026-01-01T13:00:00Z", "1", "250"]
    assert "Accuracy -" in newest
    assert "Accuracy 0.5000" in oldest
    assert "Accuracy 0.7500" in oldest
    assert count.startswith("  2 versions of 1 model: ")


def test_versions_are_given_to_programs_too(
    place: Path, millstream: Callable[..., Outcome]
) -> None:
    outcome = millstream("models", "--home", str(place), "--model", "occupancy", "--json")

    [model] = json.loads(outcome.out)["models"]
    assert [version["version"] for version in model["versions"]] == [
        "2026-01-01T13:00:00Z",
        "2026-01-01T12:00:00Z",
    ]
    assert model["versions"][1]["size"] == 3


def test_a_model_that_does_not_exist_is_refused(
    place: Path, millstream: Callable[..., Outcome]
) -> None:
    outcome = millstream("models", "--home", str(place), "--model", "ocupancy")

    assert outcome.code == 2
    assert "a model of the home: did you mean 'occupancy'? occupancy" in outcome.err
