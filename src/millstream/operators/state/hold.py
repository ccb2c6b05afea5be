"""How long operators keep a row before they tell what came of it, beyond the watermark."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

_HELD: ContextVar[list[timedelta] | None] = ContextVar("held", default=None)


def hold_for(longest: timedelta) -> None:
    """Tell that an operator gives no row that stems from more than so long before the watermark."""
    if (held := _HELD.get()) is not None:
        held.append(longest)


@contextmanager
def noting_holds() -> Iterator[list[timedelta]]:
    """Take note of what operators tell while an answer is built."""
    held: list[timedelta] = []
    token = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(token)
