"""Errors as they are raised: what is wrong, where, and how to fix it."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.errors.page import read_page
from millstream.errors.secret import concealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.errors.location import Location
    from millstream.errors.page import Page


class MillstreamError(Exception):
    """Anything Millstream refuses or reports: what, where and how to fix it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, page: Page, facts: Mapping[str, object], at: Location | None) -> None:
        self.code = page.code
        self.what = concealed(page.what.format_map(facts))
        self.fix = concealed(page.fix.format_map(facts))
        self.at = page.point(at, facts)
        self.facts = facts
        self.transient = page.transient
        """Whether trying again, with nothing changed by the user, may succeed."""
        self.is_warning = page.warning
        """Whether the app can run all the same."""
        super().__init__(self.what)

    def located(self, at: Location) -> MillstreamError:
        """Add the location, for an error raised by code that cannot know it."""
        self.at = self.at or at
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own pickling would call the class with the message, and errors cross workers.
        return (_again, (type(self), self.code, self.facts, self.at))

    def __str__(self) -> str:
        place = f"\n  at:  {self.at}" if self.at else ""
        return f"[{self.code}] {self.what}{place}\n  fix: {self.fix}"

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the error and its cause, not the way through Millstream."""
        cause = self.__cause__
        causes = cause._render_traceback_() if isinstance(cause, MillstreamError) else []
        return [*causes, *str(self).splitlines()]


class DeclarationError(MillstreamError):
    """The application is wrong; its author must act."""


class UserCodeError(DeclarationError):
    """A function of the application raised or returned the wrong thing."""


class CommandError(MillstreamError):
    """The command is wrong; the person who typed it must act."""

    exit_code = 2


class ClusterError(MillstreamError):
    """Spark, a broker, storage or the machine is wrong; the person who operates it must act."""

    exit_code = 3


class FindingError(MillstreamError, AssertionError):
    """A comparison or a proof found a difference."""


class CheckpointDamagedError(ClusterError):
    """A checkpoint that cannot be read is skipped where only its progress is wanted."""


class CrashNotReachedError(CommandError):
    """A random script continues when its batch does not reach a crash point."""


class StreamArgumentError(DeclarationError, ValueError):
    """Programs written for DStreams catch ValueError where an argument is wrong."""


class StreamFunctionError(DeclarationError, AssertionError):
    """Programs written for DStreams catch AssertionError where a function takes other arguments."""


class StreamOrderError(DeclarationError, RuntimeError):
    """Programs written for DStreams catch what Java calls an IllegalStateException."""


class InboxClosedError(ClusterError):
    """A receiver ends when the app stops."""


class NotDeterministicError(UserCodeError):
    """The script that shows it is added by the code that has played it."""


class OvertakenError(ClusterError):
    """A driver that another one replaced stops, and restarts nothing."""


class SchemaError(DeclarationError):
    """A schema is read by code that does not know where it was declared."""


class StateChangedError(DeclarationError):
    """A check reports it beside its other findings; a start raises it."""


class StoreAheadError(ClusterError):
    """Stores are compared with a checkpoint before a batch is written to any of them."""


class StoreRestoredError(ClusterError):
    """Stores are compared with a checkpoint before a batch is written to any of them."""


class StoreFailedError(ClusterError):
    """A look-up connects again, once."""


class StoreUnreachableError(ClusterError):
    """A write or a look-up connects again."""


KINDS: Mapping[str, type[MillstreamError]] = {
    "declaration": DeclarationError,
    "user code": UserCodeError,
    "command": CommandError,
    "cluster": ClusterError,
    "finding": FindingError,
}
"""The branch of each kind of page: who must act."""

CAUGHT: Mapping[str, type[MillstreamError]] = {
    "CHECKPOINT_DAMAGED": CheckpointDamagedError,
    "CRASH_NOT_REACHED": CrashNotReachedError,
    "DSTREAM_ARGUMENT": StreamArgumentError,
    "DSTREAM_FUNCTION": StreamFunctionError,
    "DSTREAM_NO_OUTPUT": StreamArgumentError,
    "DSTREAM_STATE": StreamOrderError,
    "DSTREAM_WINDOW": StreamArgumentError,
    "INBOX_CLOSED": InboxClosedError,
    "NOT_DETERMINISTIC": NotDeterministicError,
    "OVERTAKEN": OvertakenError,
    "SCHEMA": SchemaError,
    "STATE_CHANGED": StateChangedError,
    "STORE_AHEAD": StoreAheadError,
    "STORE_FAILED": StoreFailedError,
    "STORE_RESTORED": StoreRestoredError,
    "STORE_UNREACHABLE": StoreUnreachableError,
}
"""The codes that have a class of their own, because code catches it."""


def fault(code: str, /, *, at: Location | None = None, **facts: object) -> MillstreamError:
    """Make the error that a page describes, with the facts that its wording has places for.

    Raises:
        TypeError: A fact is missing, or the page has no place for it.

    >>> print(fault("HOME_EMPTY", home="shop"))
    [HOME_EMPTY] nothing has run in home 'shop' yet
      fix: `millstream run APP` first, or name another --home
    """
    page = read_page(code)
    if facts.keys() != page.places:
        wrong = ", ".join(sorted(facts.keys() ^ page.places))
        raise TypeError(f"{code} has other facts than its page: {wrong}")  # noqa: TRY003
    return CAUGHT.get(code, KINDS[page.kind])(page, facts, at)


def _again(
    kind: type[MillstreamError], code: str, facts: Mapping[str, object], at: Location | None
) -> MillstreamError:
    error = kind(read_page(code), facts, None)
    return error.located(at) if at else error


def raise_faults(faults: Sequence[MillstreamError]) -> None:
    """Raise the fault if it is one, all together if there are several, and nothing if none."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        shown = indent("\n".join(str(error) for error in faults), "  ")
        raise fault("FAULTS", count=len(faults), faults=shown)
