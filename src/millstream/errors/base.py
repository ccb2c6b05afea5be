"""What every error is made of: what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_CELL = re.compile(r"cell (\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A line of the user's code."""

    file: str
    line: int
    column: int | None = None
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict, compare=False, repr=False)
    """Where the parts of a declaration stand that has a line for each: a header in SQL."""

    def of(self, *part: str) -> Location:
        """The line of an option, of a rule ("expect", name) or of an input ("from", name)."""
        return Location(self.file, self.lines[part]) if part in self.lines else self

    @property
    def cell(self) -> int | None:
        """The number of the notebook's cell; None if it is a file."""
        found = _CELL.fullmatch(self.file)
        return int(found[1]) if found else None

    def __str__(self) -> str:
        if self.cell is not None:
            return f"{self.file}, line {self.line}"
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


def cell_name(number: int) -> str:
    """Name a notebook's cell as if it were a file.

    >>> print(Location(cell_name(3), 2))
    cell 3, line 2
    """
    return f"cell {number}"


def relative(file: str) -> str:
    """Shorten a path that lies below the working folder."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def closest(name: str, known: Iterable[str]) -> str:
    """Offer the nearest known name.

    >>> closest("ordrs", ["orders", "clicks"])
    "did you mean 'orders'? "
    >>> closest("x", ["orders"])
    ''
    """
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {nearest[0]!r}? " if nearest else ""


def listed(names: Iterable[str]) -> str:
    """Name things in a sentence.

    >>> listed(["b", "a"])
    'a, b'
    >>> listed([])
    'none'
    """
    return ", ".join(sorted(names)) or "none"


_CONCEALED: dict[str, str] = {}
_SHORTEST = 4
"""Shorter values are too common in other words to be looked for."""


def conceal(value: str, written: str) -> None:
    """Have no error show a value, even where it was told by someone else, such as Spark."""
    if len(value) >= _SHORTEST:
        _CONCEALED[value] = written


def concealed(text: str) -> str:
    """Show what is to be concealed as it was written.

    >>> conceal("hunter2", "${PASSWORD}")
    >>> concealed("hunter2 is refused")
    '${PASSWORD} is refused'
    """
    for value in sorted(_CONCEALED, key=len, reverse=True):
        text = text.replace(value, _CONCEALED[value])
    return text


def _rebuild(
    kind: Callable[..., MillstreamError],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    at: Location | None,
) -> MillstreamError:
    error = kind(*args, **kwargs)
    error.at = at
    return error


class MillstreamError(Exception):
    """Anything Millstream refuses or reports: what, where and how to fix it."""

    code: ClassVar[str] = "MILLSTREAM"
    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False
    """Whether trying again, with nothing changed by the user, may succeed."""
    is_warning: ClassVar[bool] = False
    """Whether the app can run all the same."""

    _call: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> MillstreamError:  # noqa: D102
        error = super().__new__(cls, *args)
        error._call = (args, kwargs)
        return error

    def __init__(self, what: str, *, fix: str, at: Location | None = None) -> None:
        self.what, self.fix, self.at = concealed(what), concealed(fix), at
        super().__init__(self.what)

    def located(self, at: Location) -> MillstreamError:
        """Say where, for an error raised by code that cannot know."""
        self.at = self.at or at
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only arguments are lost by Exception's own pickling, and errors cross workers.
        return (_rebuild, (type(self), *self._call, self.at))

    def __str__(self) -> str:
        place = f"\n  at:  {self.at}" if self.at else ""
        return f"[{self.code}] {self.what}{place}\n  fix: {self.fix}"

    def _render_traceback_(self) -> list[str]:
        """Give what a notebook shows: the error and its cause, not the way through Millstream."""
        cause = self.__cause__
        causes = cause._render_traceback_() if isinstance(cause, MillstreamError) else []
        return [*causes, *str(self).splitlines()]


class DeclarationError(MillstreamError):
    """The application is wrong; its author must act."""

    code = "DECLARATION"


class UserCodeError(DeclarationError):
    """A function of the application raised or returned the wrong thing."""

    code = "USER_CODE"


class CommandError(MillstreamError):
    """The command is wrong; whoever typed it must act."""

    code = "COMMAND"
    exit_code = 2


class ClusterError(MillstreamError):
    """Spark, a broker, storage or the machine is wrong; whoever operates it must act."""

    code = "CLUSTER"
    exit_code = 3
