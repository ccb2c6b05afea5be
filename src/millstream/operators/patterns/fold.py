"""Many values of a step made into one, as Spark's aggregates do."""

from __future__ import annotations

import math
import operator
from decimal import Context
from functools import reduce
from typing import TYPE_CHECKING, Any

from millstream.operators.patterns.condition import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.operators.patterns.evaluate import Kind

    Fold = Callable[[Sequence[Any]], Any]


DIGITS = Context(prec=100)
"""Arithmetic of decimals as exact as Spark's; Python's own operators round to 28 digits."""


def _sum(kind: Kind, rendered: str) -> tuple[Kind, Fold]:
    if kind in ("double", "float"):
        return "double", lambda values: _added(values) if values else None
    if kind not in ("integer", "decimal"):
        refuse(f"{rendered} is a sum of {kind}")
    return (
        kind,
        lambda values: (
            reduce(DIGITS.add if kind == "decimal" else operator.add, values) if values else None
        ),
    )


def _average(kind: Kind, rendered: str) -> tuple[Kind, Fold]:
    if kind not in ("integer", "double", "float"):
        refuse(f"{rendered} is an average of {kind}, not done exactly as in Spark")
    return "double", lambda values: _added(values) / len(values) if values else None


def _added(values: Sequence[Any]) -> float:
    # Python's own sum() compensates rounding from version 3.12 on; Spark's does not.
    return reduce(operator.add, map(float, values))


def _count(_: Kind, __: str) -> tuple[Kind, Fold]:
    return "integer", len


def _extreme(choose: Callable[..., Any]) -> Callable[[Kind, str], tuple[Kind, Fold]]:
    def made(kind: Kind, _: str) -> tuple[Kind, Fold]:
        return kind, lambda values: choose(values, key=_order) if values else None

    return made


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, float) and math.isnan(value), value


def _end(place: int) -> Callable[[Kind, str], tuple[Kind, Fold]]:
    return lambda kind, _: (kind, lambda values: values[place] if values else None)


FOLDS: dict[str, Callable[[Kind, str], tuple[Kind, Fold]]] = {
    "sum": _sum,
    "avg": _average,
    "count": _count,
    "min": _extreme(min),
    "max": _extreme(max),
    "first": _end(0),
    "last": _end(-1),
}
