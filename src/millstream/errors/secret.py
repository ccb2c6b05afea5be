"""Secret values, hidden in every text that is shown or logged, also in those of other programs."""

from __future__ import annotations

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
