"""Answers that all open pages share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from starlette.responses import Response

from millstream.console import shared
from millstream.console.shared import SharedAnswers

AT_ONCE = 5


def test_pages_that_ask_at_the_same_time_share_one_answer() -> None:
    numbers, all_ask = count(), threading.Barrier(AT_ONCE)
    answers = SharedAnswers(lambda: 1)

    def ask() -> bytes:
        all_ask.wait()
        return bytes(answers.response("overview", lambda: Response(str(next(numbers)))).body)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        given = [threads.submit(ask) for _ in range(AT_ONCE)]

    assert [one.result() for one in given] == [b"0"] * AT_ONCE


def test_an_answer_is_made_again_for_another_question_after_a_change_and_after_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers, mark = count(), [1]
    answers = SharedAnswers(lambda: mark[0])

    def ask(asked: str) -> bytes:
        return bytes(answers.response(asked, lambda: Response(str(next(numbers)))).body)

    given = [ask("one"), ask("one"), ask("two"), ask("one")]
    mark[0] = 2
    given.append(ask("one"))
    monkeypatch.setattr(shared, "_KEPT_S", 0.0)
    given.append(ask("one"))

    assert given == [b"0", b"0", b"1", b"0", b"2", b"3"]
    assert len(answers._answers) == 1


def test_an_error_is_given_to_each_page_and_not_kept() -> None:
    answers = SharedAnswers(lambda: 1)

    def fail() -> Response:
        raise RuntimeError

    for _ in range(2):
        with pytest.raises(RuntimeError):
            answers.response("overview", fail)
    kept = answers.response("overview", lambda: Response("made", 422, {"X-Of": "it"}))

    assert (kept.status_code, kept.headers["x-of"]) == (422, "it")
