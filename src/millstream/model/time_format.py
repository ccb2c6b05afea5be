"""How times are written in records: ISO 8601, numbers since 1970, or patterns as Spark has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.model.data_type import Atom, type_ddl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.data_type import Type

TIMES = (Atom.TIMESTAMP, Atom.TIMESTAMP_NTZ, Atom.DATE)

ISO = "iso"
EPOCHS = {"epoch_s": 6, "epoch_ms": 3, "epoch_us": 0, "epoch_ns": -3}
"""Of a number since 1970, the power of ten that makes it microseconds."""

_COUNTS = {
    "y": (1, 2, 3, 4),
    "M": (1, 2, 3, 4),
    "d": (1, 2),
    "H": (1, 2),
    "h": (1, 2),
    "m": (1, 2),
    "s": (1, 2),
    "S": tuple(range(1, 10)),
    "a": (1,),
    "E": (1, 2, 3, 4),
    "Z": (1, 2, 3),
    "X": (1, 2, 3),
    "x": (1, 2, 3),
    "V": (2,),
}
LETTERS = " ".join(_COUNTS)
_ZONES = "ZXxV"
_PART = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<other>.)", re.DOTALL)
_RESERVED = "{}#'"


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a pattern, literal text, or the begin or end of an optional section."""

    letter: str
    """Of a field; `'` of text, `[` and `]` of an optional section."""
    text: str

    @property
    def count(self) -> int:
        """How often the letter is there."""
        return len(self.text)


def parts_of(pattern: str) -> tuple[Part, ...]:
    """Read a pattern.

    >>> [part.text for part in parts_of("dd/MMM/yyyy")]
    ['dd', '/', 'MMM', '/', 'yyyy']

    Raises:
        ValueError: It cannot be read; the text says why.
    """
    found = [_part(match) for match in _PART.finditer(pattern)]
    fields = [part.letter for part in found if part.letter.isalpha()]
    twice = [letter for letter in fields if fields.count(letter) > 1]
    depth = 0
    for part in found:
        depth += {"[": 1, "]": -1}.get(part.letter, 0)
        if depth < 0:
            break
    if depth:
        why = "a bracket has no partner"
    elif not fields:
        why = "it has no field"
    elif twice:
        why = f"{twice[0]!r} is there twice"
    elif len([letter for letter in fields if letter in _ZONES]) > 1:
        why = "it has two zones"
    elif "H" in fields and ("h" in fields or "a" in fields):
        why = "it has an hour of 24 beside one of 12, or beside AM and PM"
    elif "a" in fields and "h" not in fields:
        why = "AM and PM need an hour of 12, 'h'"
    else:
        return tuple(found)
    raise ValueError(why)


def format_fault(text: object) -> str | None:
    """Return why a text is not a format that can be read; None if it is one."""
    if not isinstance(text, str):
        return f"{text!r} is no text"
    if text == ISO or text in EPOCHS:
        return None
    try:
        parts_of(text)
    except ValueError as error:
        return f"{text!r} cannot be read: {error}"
    return None


def formats_fault(column: str, types: Mapping[str, Type], formats: Sequence[object]) -> str | None:
    """Return why a column cannot be read by formats; None if it can."""
    kind = types.get(column)
    if kind is None:
        return "it is no column of the schema"
    if kind not in TIMES:
        return f"it is {type_ddl(kind)}, and formats are of TIMESTAMP, TIMESTAMP_NTZ and DATE"
    if not formats:
        return "there is none"
    return next(filter(None, map(format_fault, formats)), None)


def _part(match: re.Match[str]) -> Part:
    if (letters := match["letters"]) is not None:
        if len(letters) in _COUNTS.get(letters[0], ()):
            return Part(letters[0], letters)
        if letters[0] in _COUNTS:
            why = f"{letters!r} is too long or too short"
            raise ValueError(why)
        why = f"{letters!r} is no field; put text in quotes, as in 'T'"
        raise ValueError(why)
    if (quoted := match["quoted"]) is not None:
        return Part("'", quoted.replace("''", "'") or "'")
    other = match["other"]
    if other in _RESERVED:
        why = f"{other!r} must be in quotes" if other != "'" else "a quote is not closed"
        raise ValueError(why)
    return Part(other if other in "[]" else "'", other)
