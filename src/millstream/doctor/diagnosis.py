"""The result of one check."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.errors import MillstreamError

State = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What one check found, and how to fix it."""

    subject: str
    state: State
    what: str
    fix: str = ""

    @staticmethod
    def of(subject: str, error: MillstreamError) -> Diagnosis:
        """Return the diagnosis of an error."""
        return Diagnosis(subject, "bad", error.what, error.fix)


def within(seconds: float, call: Callable[[], object]) -> OSError | None:
    """Make a call that may hang, and return what it raised; a thread that hangs is abandoned."""
    ended: list[OSError | None] = []

    def run() -> None:
        try:
            call()
            ended.append(None)
        except OSError as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return ended[0] if ended else TimeoutError(None, f"no answer within {seconds:g} s")
