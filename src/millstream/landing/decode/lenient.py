"""Values that almost fit their column, made to fit where a source is lenient."""

from __future__ import annotations

from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any

from millstream.landing.decode.column import number
from millstream.model.data_type import Atom, Decimal

if TYPE_CHECKING:
    from millstream.model.data_type import Type

INTEGERS = (Atom.TINYINT, Atom.SMALLINT, Atom.INT, Atom.BIGINT)
_REALS = (Atom.FLOAT, Atom.DOUBLE)
_MOST_DIGITS = 40
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "y", "t", "on", "1"), True),
    **dict.fromkeys(("false", "no", "n", "f", "off", "0"), False),
}


def bent(kind: Type, value: Any) -> Any:
    """Return a value that fits a type, made of one that does not; null for an empty text.

    Raises one of `UNFIT` if there is none.

    >>> bent(Atom.INT, " 12 "), bent(Atom.INT, Number("1.0")), bent(Atom.BOOLEAN, "Yes")
    (12, 1, True)
    """
    if isinstance(value, str):
        value = value.strip()
        if not value:
            return None
    if kind is Atom.BOOLEAN:
        word = "" if isinstance(value, float) else str(value).lower()
        if word not in _BOOLEANS:
            raise ValueError(value)
        return _BOOLEANS[word]
    if kind in INTEGERS:
        return _whole(number(value) if isinstance(value, str) else value)
    if not isinstance(value, str):
        raise TypeError(value)
    return number(value) if kind in _REALS or isinstance(kind, Decimal) else value


def _whole(exact: Any) -> int:
    if not isinstance(exact, Number) or exact.adjusted() > _MOST_DIGITS:
        raise ValueError(exact)
    if exact != exact.to_integral_value():
        raise ValueError(exact)
    return int(exact)


def bent_text(kind: Type, text: str) -> str:
    """Return a text that fits a type, made of one that does not; an empty one is null.

    Raises one of `UNFIT` if there is none.

    >>> bent_text(Atom.INT, "1.0 "), bent_text(Atom.BOOLEAN, "no"), bent_text(Atom.DOUBLE, " 1.50")
    ('1', 'false', '1.50')
    """
    if kind is Atom.BOOLEAN or kind in INTEGERS:
        value = bent(kind, text)
        return "" if value is None else str(value).lower()
    return text.strip()
