"""Words that errors share: lists of names, and the nearest name."""

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
