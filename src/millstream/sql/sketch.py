"""Sketches that Spark wrote, read and merged without a JVM, by Apache DataSketches for Python.

The functions have Spark's names, take and return the same bytes, and are created in DuckDB when a
query calls them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.model.sketch import DEVIATIONS
from millstream.sql import frequent_items
from millstream.sql.sketch_bytes import check_kll, check_kll_total, check_theta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

_LG_K, _K = 12, 200
"""Spark's defaults."""


@dataclass(frozen=True, slots=True)
class SketchFunction:
    """A function of bytes, as DuckDB creates it."""

    compute: Callable[..., Any]
    takes: tuple[str, ...]
    gives: str


def theta_estimate(theta: bytes | None) -> int | None:
    """Return the estimate of a theta sketch, as Spark rounds it."""
    return None if theta is None else round(_theta(theta).get_estimate())


def distinct_estimate(theta: bytes | None) -> dict[str, Any] | None:
    """Return the estimate of a theta sketch, with the bounds of `model.sketch.distinct_sql`."""
    if theta is None:
        return None
    sketch = _theta(theta)
    found, share = round(sketch.get_estimate()), float(sketch.theta)
    lower = upper = found
    if share < 1:
        kept = float(round(found * share))
        wide = DEVIATIONS * DEVIATIONS * (1 - share) / share
        lower = max(int(kept), math.floor(_bound((kept - 0.5) / share, wide, -0.5)))
        upper = math.ceil(_bound((kept + 0.5) / share, wide, 0.5))
    return {"estimate": found, "lower": lower, "upper": upper, "theta": theta}


def _bound(whole: float, wide: float, half: float) -> float:
    return whole + 0.5 * wide + half * math.sqrt(wide * (wide + 4 * max(whole, 0)))


def theta_union(sketches: list[bytes | None], lg_k: int = _LG_K) -> bytes:
    """Unite theta sketches."""
    from datasketches import theta_union as make

    union = make(lg_k)
    for data in sketches:
        if data is not None:
            union.update(_theta(data))
    return _packed(union.get_result())


def theta_intersection(one: bytes | None, other: bytes | None) -> bytes | None:
    """Intersect two theta sketches."""
    from datasketches import theta_intersection as make

    if one is None or other is None:
        return None
    intersection = make()
    intersection.update(_theta(one))
    intersection.update(_theta(other))
    return _packed(intersection.get_result())


def theta_difference(one: bytes | None, other: bytes | None) -> bytes | None:
    """Leave out of a theta sketch what another one has."""
    from datasketches import theta_a_not_b

    if one is None or other is None:
        return None
    return _packed(theta_a_not_b().compute(_theta(one), _theta(other)))


def _theta(data: bytes) -> Any:
    from datasketches import compact_theta_sketch

    check_theta(data)
    return compact_theta_sketch.deserialize(bytes(data))


def _packed(sketch: Any) -> bytes:
    return bytes(sketch.serialize(compress=True))


def kll_merge(sketches: list[bytes | None], k: int | None = None) -> bytes:
    """Merge KLL sketches; without k, as large as the largest of them."""
    from datasketches import kll_doubles_sketch

    read = [_kll(data) for data in sketches if data is not None]
    check_kll_total(sum(sketch.n for sketch in read))
    merged = kll_doubles_sketch(k or max((sketch.k for sketch in read), default=_K))
    for sketch in read:
        merged.merge(sketch)
    return bytes(merged.serialize())


def kll_quantiles(kll: bytes | None, ranks: list[float]) -> list[float] | None:
    """Return the values at some ranks; None of no values."""
    if kll is None or not (sketch := _kll(kll)).n:
        return None
    return [float(sketch.get_quantile(rank, inclusive=True)) for rank in ranks]


def kll_ranks(kll: bytes | None, values: list[float]) -> list[float] | None:
    """Return which share of the values is at most each of these; None of no values."""
    if kll is None or not (sketch := _kll(kll)).n:
        return None
    return [float(sketch.get_rank(value, inclusive=True)) for value in values]


def kll_count(kll: bytes | None) -> int | None:
    """Return how many values a KLL sketch is of."""
    return None if kll is None else int(_kll(kll).n)


def _kll(data: bytes) -> Any:
    from datasketches import kll_doubles_sketch

    check_kll(data)
    return kll_doubles_sketch.deserialize(bytes(data))


_THETA = "BLOB"
_DISTINCT = "STRUCT(estimate BIGINT, lower BIGINT, upper BIGINT, theta BLOB)"

FUNCTIONS = {
    "sketch_theta_estimate": SketchFunction(theta_estimate, (_THETA,), "BIGINT"),
    "sketch_theta_union": SketchFunction(theta_union, ("BLOB[]", "INTEGER"), _THETA),
    "sketch_theta_intersection": SketchFunction(theta_intersection, (_THETA, _THETA), _THETA),
    "sketch_theta_difference": SketchFunction(theta_difference, (_THETA, _THETA), _THETA),
    "sketch_distinct": SketchFunction(distinct_estimate, (_THETA,), _DISTINCT),
    "sketch_kll_merge": SketchFunction(kll_merge, ("BLOB[]", "INTEGER"), "BLOB"),
    "sketch_kll_quantiles": SketchFunction(kll_quantiles, ("BLOB", "DOUBLE[]"), "DOUBLE[]"),
    "sketch_kll_ranks": SketchFunction(kll_ranks, ("BLOB", "DOUBLE[]"), "DOUBLE[]"),
    "sketch_kll_count": SketchFunction(kll_count, ("BLOB",), "BIGINT"),
    **{
        f"sketch_top_{kind}": SketchFunction(
            partial(frequent_items.top_of, kind),
            ("BLOB", "INTEGER"),
            f'STRUCT(item {duck}, "count" BIGINT)[]',
        )
        for kind, duck in frequent_items.KINDS.items()
    },
    **{
        f"sketch_items_{kind}": SketchFunction(
            partial(frequent_items.merge, kind), ("BLOB[]", "INTEGER"), "BLOB"
        )
        for kind in frequent_items.KINDS
    },
}
"""By their names in DuckDB."""


def named_in(text: str) -> tuple[str, ...]:
    """Return the functions that a query of DuckDB calls."""
    return tuple(name for name in FUNCTIONS if f"{name}(" in text)


def create(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> None:
    """Create functions in DuckDB.

    Raises:
        EXTRA_MISSING: DataSketches is not installed.
    """
    if not names:
        return
    try:
        import datasketches  # noqa: F401
    except ModuleNotFoundError as error:
        raise fault(
            "EXTRA_MISSING",
            what="a query that reads sketches without Spark",
            module="datasketches",
            extra="sketches",
        ) from error
    from duckdb.func import FunctionNullHandling

    for name in names:
        function = FUNCTIONS[name]
        connection.create_function(
            name,
            function.compute,
            [*function.takes],
            function.gives,
            null_handling=FunctionNullHandling.SPECIAL,
        )
