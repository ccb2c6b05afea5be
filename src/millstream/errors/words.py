"""Words that errors share: lists of names, the nearest name, and values that no error shows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    """Hide a value in all errors, also in messages of others, such as Spark."""
    if len(value) >= _SHORTEST:
        _CONCEALED[value] = written


def concealed(text: str) -> str:
    """Show each concealed value as it was written.

    >>> conceal("hunter2", "${PASSWORD}")
    >>> concealed("hunter2 is refused")
    '${PASSWORD} is refused'
    """
    for value in sorted(_CONCEALED, key=len, reverse=True):
        text = text.replace(value, _CONCEALED[value])
    return text
