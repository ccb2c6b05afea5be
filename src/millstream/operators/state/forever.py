"""State that an operator of a stream never forgets, told where it is called."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.errors import MillstreamError

    MakeWarning = Callable[[str], MillstreamError]

_TOLD: ContextVar[list[MakeWarning] | None] = ContextVar("told", default=None)


def keep_forever(warning: MakeWarning) -> None:
    """Tell that state is never forgotten; the warning is made for the dataset that calls."""
    if (told := _TOLD.get()) is not None:
        told.append(warning)


@contextmanager
def noting_forever() -> Iterator[list[MakeWarning]]:
    """Take note of what operators tell while an answer is built."""
    told: list[MakeWarning] = []
    token = _TOLD.set(told)
    try:
        yield told
    finally:
        _TOLD.reset(token)
