from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.memo import remembered

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def never() -> tuple[str, ...]:
    raise AssertionError


def test_an_answer_is_found_once() -> None:
    assert remembered("q", lambda: ("a", "b"), by=["json"]) == ("a", "b")

    assert remembered("q", never, by=["json"]) == ("a", "b")


def test_another_question_or_another_finder_is_asked_again() -> None:
    remembered("q", lambda: ("a",), by=["json"])

    assert remembered("p", lambda: ("b",), by=["json"]) == ("b",)
    assert remembered("q", lambda: ("c",), by=["csv"]) == ("c",)


@pytest.mark.parametrize("text", ["", "{", "3"])
def test_an_answer_that_cannot_be_read_is_found_again(text: str, cache: Path) -> None:
    remembered("q", lambda: ("a",), by=["json"])
    [file] = (cache / "memo").iterdir()
    file.write_text(text)

    assert remembered("q", lambda: ("b",), by=["json"]) == ("b",)


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(cache: Path) -> None:
    cache.write_text("a file, not a folder")

    assert remembered("q", lambda: ("a",), by=["json"]) == ("a",)


def test_what_finding_raises_is_not_remembered() -> None:
    with pytest.raises(AssertionError):
        remembered("q", never, by=["json"])

    assert remembered("q", lambda: ("a",), by=["json"]) == ("a",)
