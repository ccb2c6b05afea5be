"""Answers that all open pages share: made once after a change of the home, however many ask."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_KEPT_S = 1.0
"""Some of what is shown changes with time alone, such as rates."""


@dataclass(slots=True)
class _Answer:
    mark: int
    made_at: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    response: Response | None = None


class SharedAnswers:
    """Answers by what was asked, for as long as the home does not change, and for a second."""

    def __init__(self, mark: Callable[[], int]) -> None:
        self._mark = mark
        self._lock = threading.Lock()
        self._answers: dict[Hashable, _Answer] = {}

    def response(self, asked: Hashable, make: Callable[[], Response]) -> Response:
        """Return the answer that another page has just been given, or make one.

        Pages that ask while it is made wait for it. An error is given to each that asked.
        """
        answer = self._answer(asked)
        with answer.lock:
            made = answer.response = answer.response or make()
        return Response(made.body, made.status_code, dict(made.headers))

    def _answer(self, asked: Hashable) -> _Answer:
        mark, now = self._mark(), time.monotonic()
        with self._lock:
            recent = {
                key: answer
                for key, answer in self._answers.items()
                if answer.mark == mark and now - answer.made_at < _KEPT_S
            }
            self._answers = recent
            return recent.setdefault(asked, _Answer(mark, now))
