"""A script as text: what was done, ready to be pasted as a test."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CRASH = re.compile(r"crash\(after='(\w+)'")


class Transcript:
    """What a script did so far."""

    def __init__(self, now: str = "") -> None:
        self._now, self._calls = now, list[str]()

    @property
    def happened(self) -> Counter[str]:
        """How often each call was made; crashes are counted by their point."""
        return Counter(_kind(call) for call in self._calls)

    def sent(self, source: str, records: Sequence[str], columns: Mapping[str, Any]) -> None:
        """Write down what was sent."""
        words = [repr(source), *map(repr, records), *(f"{k}={v!r}" for k, v in columns.items())]
        self.did(f"send({', '.join(words)})")

    def did(self, call: str) -> None:
        """Write down a call."""
        self._calls.append(call)

    def replace_last(self, call: str) -> None:
        """Write down that the last call did something else."""
        self._calls[-1] = call

    def as_test(self) -> str:
        """Return the text of a test that does the same."""
        lines = "\n".join(f"        s.{call}" for call in self._calls)
        return f"def test_counterexample(stream):\n    with stream(app{self._now}) as s:\n{lines}"


def _kind(call: str) -> str:
    crash = _CRASH.match(call)
    return f"crash after {crash[1]}" if crash else call.partition("(")[0]
