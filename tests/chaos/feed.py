"""Input for an app while its drivers are killed, and what of it must have landed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Span:
    """The positions of one origin: a file and its lines, a partition and its offsets."""

    first: int = 0
    count: int | None = None
    """None if it goes on by itself: then what has landed must have no gap."""


EVERYTHING = Span()
"""What is expected of an origin that nobody feeds."""


class Feeder(Protocol):
    """A way to give an app input; it is made of a folder and a seed."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the app file reads from its environment, say the folder of its input."""
        ...

    def feed(self) -> None:
        """Add a little input."""
        ...

    def expected(self) -> Mapping[str, Mapping[str, Span]]:
        """Say, by source and origin, what has been put so far.

        A source that is not named feeds itself: each of its origins counts from 0.
        """
        ...


class Clock:
    """For apps that need no input: a generator makes its records by the clock."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.seed = place, seed

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing."""
        return {}

    def feed(self) -> None:
        """Do nothing."""

    def expected(self) -> Mapping[str, Mapping[str, Span]]:
        """Say nothing: every source feeds itself."""
        return {}


class Folder:
    """For apps that read a folder of lines: every feed is one more file."""

    def __init__(
        self, path: Path, line: Callable[[int], str], *, source: str, variable: str, rows: int = 20
    ) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.rows = path, rows
        self._line, self._source, self._variable = line, source, variable
        self._spans: dict[str, Span] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        """The variable that names the folder."""
        return {self._variable: str(self.path)}

    def feed(self) -> None:
        """Add a file, which appears whole or not at all."""
        number = len(self._spans)
        file = self.path / f"{number:06d}.txt"
        numbers = range(number * self.rows, (number + 1) * self.rows)
        hidden = file.with_name(f".{file.name}")
        hidden.write_text("".join(f"{self._line(n)}\n" for n in numbers))
        hidden.rename(file)
        self._spans[str(file)] = Span(1, self.rows)

    def expected(self) -> Mapping[str, Mapping[str, Span]]:
        """Say that every line is to land, in the place it has in its file."""
        return {self._source: dict(self._spans)}
