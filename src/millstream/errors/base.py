"""What every error is made of: what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A line of the user's code."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


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

    _call: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> MillstreamError:  # noqa: D102
        error = super().__new__(cls, *args)
        error._call = (args, kwargs)
        return error

    def __init__(self, what: str, *, fix: str, at: Location | None = None) -> None:
        self.what, self.fix, self.at = what, fix, at
        super().__init__(what)

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
