"""How long operators keep a row before they tell what came of it, beyond the watermark."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Hold:
    """What an operator tells of the rows that it gives once the watermark allows."""

    longest: timedelta
    """None stems from more than so long before the watermark."""
    keeps_times: bool = True
    """Whether times in its rows are those of its events; a function of the user's gives any."""


_HELD: ContextVar[list[Hold] | None] = ContextVar("held", default=None)


def hold_for(longest: timedelta, *, keeps_times: bool = True) -> None:
    """Tell that an operator gives no row that stems from more than so long before the watermark."""
    if (held := _HELD.get()) is not None:
        held.append(Hold(longest, keeps_times))


@contextmanager
def noting_holds() -> Iterator[list[Hold]]:
    """Take note of what operators tell while an answer is built."""
    held: list[Hold] = []
    token = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(token)
