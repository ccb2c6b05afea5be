"""Translating in a process beside: it learns Spark's SQL while this one learns the rest.

To import the parser takes as long as to import DuckDB and to answer. With two processors, neither
has to wait for the other.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.sql.question import Question

_begun: list[Translator] = []


def begin() -> None:
    """Begin to learn, in a process beside, unless this one knows already and may have threads."""
    if hasattr(os, "fork") and "deltalake" not in sys.modules:
        _begun.append(Translator())


def translate(home: Home, text: str) -> Question:
    """Translate a query: in the process that was begun, or here."""
    question = _begun.pop().translate(home, text) if _begun else None
    if question is None:
        from millstream.sql.translation import translate as translate_here

        return translate_here(home, text)
    return question


class Translator:
    """A process that translates one query and ends; it ends without one if nobody asks."""

    def __init__(self) -> None:
        asked, self._ask = os.pipe()
        self._told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._ask)
            os.close(self._told)
            _serve(asked, tell)
        os.close(asked)
        os.close(tell)

    def translate(self, home: Home, text: str) -> Question | None:
        """Give the translation; None if there is none, and whoever tries again finds out why."""
        from millstream.sql.question import Question

        with os.fdopen(self._told) as told:
            # Whoever cannot be asked any more has told nothing, which is found out by reading.
            with contextlib.suppress(BrokenPipeError), os.fdopen(self._ask, "w") as ask:
                json.dump([str(home.path), text], ask)
            answer = told.read()
        os.waitpid(self.pid, 0)
        return Question(**json.loads(answer)) if answer else None


def _serve(asked: int, tell: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    try:
        from millstream.lake.home import Home
        from millstream.sql.translation import translate

        with os.fdopen(asked) as ask, os.fdopen(tell, "w") as told:
            if request := ask.read():
                path, text = json.loads(request)
                json.dump(asdict(translate(Home.at(path), text)), told)
    finally:
        # Not as a program ends: what this process was forked from is not its own to close.
        os._exit(0)
