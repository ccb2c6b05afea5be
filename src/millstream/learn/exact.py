"""Sums of floating numbers that do not depend on how they are grouped: in parts, without error."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    Sums = dict[Hashable, tuple[float, ...]]
    """Sums by name, each as numbers that add up to it exactly."""

LARGEST = 1e100
"""Greater numbers are not summed up: their squares, added up, might be infinite."""


def exact_sum(values: Iterable[float]) -> tuple[float, ...]:
    """Return few numbers that add up to exactly what all the values do.

    >>> exact_sum([1e16, 1.0, 1.0, 0.5])
    (1.0000000000000002e+16, 0.5)
    """
    left, parts = list(values), list[float]()
    while part := math.fsum(left):
        parts.append(part)
        left.append(-part)
    return tuple(parts)


def totals_of(parts: Iterable[Sums]) -> dict[Any, Fraction]:
    """Add up sums by name, in an order that does not matter: the totals are exact.

    >>> totals_of([{"a": (0.1, 0.2)}, {"a": (0.3,), "b": (1.0,)}])["b"]
    Fraction(1, 1)
    """
    found: defaultdict[Any, list[float]] = defaultdict(list)
    for sums in parts:
        for name, numbers in sums.items():
            found[name] += numbers
    names = sorted(found, key=repr)
    return {name: sum(map(Fraction, exact_sum(found[name])), Fraction()) for name in names}


def added(known: Mapping[Any, float], totals: Mapping[Any, Fraction]) -> dict[Any, float]:
    """Add totals to what is known."""
    return {**known, **{name: known.get(name, 0.0) + float(totals[name]) for name in totals}}
