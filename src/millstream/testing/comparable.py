"""Values of rows that can be counted and compared, though computed in another order."""

from __future__ import annotations

import math
from typing import Any

from millstream.model.sketch import exact_part


class Near(float):
    """A float that equals every other one of the same first nine digits.

    The last digits of a floating sum depend on the order of addition. The factor moves
    values away from short decimals that lie between two roundings, as means often do.

    >>> Near(0.1 + 0.2) == 0.3, Near(1.0) == 1.00000002, Near(0.1 + 0.2)
    (True, False, 0.3)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float | int) and self._digits == Near(other)._digits

    def __hash__(self) -> int:
        return hash(self._digits)

    def __repr__(self) -> str:
        return repr(float(f"{float(self):.9e}"))

    @property
    def _digits(self) -> str:
        return f"{float(self) * math.pi:.9e}"


def exact(value: Any) -> Any:
    """Make a value countable: structs and lists as tuples, floats near enough to be equal.

    Of a sketch, only what does not depend on the order of rows.

    >>> exact({"n": 1, "mean": 0.1 + 0.2}) == exact({"n": 1, "mean": 0.3})
    True
    """
    match value:
        case dict():
            return tuple((name, exact(inner)) for name, inner in exact_part(value).items())
        case list():
            return tuple(map(exact, value))
        case float():
            return Near(value)
        case _:
            return value
