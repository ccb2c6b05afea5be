from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.memo import remembered

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def never() -> Mapping[str, int]:
    raise AssertionError


def test_an_answer_is_found_once() -> None:
    assert remembered("q", lambda: {"a": 1, "b": 2}, by=["json"]) == {"a": 1, "b": 2}

    assert remembered("q", never, by=["json"]) == {"a": 1, "b": 2}


def test_another_question_or_another_finder_is_asked_again() -> None:
    remembered("q", lambda: {"a": 1}, by=["json"])

    assert remembered("p", lambda: {"b": 1}, by=["json"]) == {"b": 1}
    assert remembered("q", lambda: {"c": 1}, by=["csv"]) == {"c": 1}


@pytest.mark.parametrize("text", ["", "{", "3"])
def test_an_answer_that_cannot_be_read_is_found_again(text: str, cache: Path) -> None:
    remembered("q", lambda: {"a": 1}, by=["json"])
    [file] = (cache / "memo").iterdir()
    file.write_text(text)

    assert remembered("q", lambda: {"b": 1}, by=["json"]) == {"b": 1}


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(cache: Path) -> None:
    cache.write_text("a file, not a folder")

    assert remembered("q", lambda: {"a": 1}, by=["json"]) == {"a": 1}


def test_what_finding_raises_is_not_remembered() -> None:
    with pytest.raises(AssertionError):
        remembered("q", never, by=["json"])

    assert remembered("q", lambda: {"a": 1}, by=["json"]) == {"a": 1}
