"""Errors of the test kit: a script that asks for what cannot be, and what a proof has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import CommandError, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class UnknownCrashPointError(CommandError):
    """A test names a crash point that does not exist."""

    code = "UNKNOWN_CRASH_POINT"

    def __init__(self, point: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no crash point {point!r}",
            fix=f"{closest(point, known)}crash points are {listed(known)}",
        )
