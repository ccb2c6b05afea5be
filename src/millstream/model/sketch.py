"""How a sketch is stored in a column: a struct of its estimates, whose last field is its bytes.

The type of a column says whether it is a sketch, so nothing else has to be kept beside it. The
estimates are computed by Spark from the bytes; the same SQL is behind the functions of Python and
those of SQL apps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DEVIATIONS = 2
"""How far the bounds of a distinct count are from it, in standard deviations: 95 % of the times."""
RANK_ERROR = (2.296, 0.9723)
"""The greatest error of a rank, 99 % of the times, is the first number over k to the second."""

LAYOUTS = {
    "distinct": ("estimate", "lower", "upper", "theta"),
    "quantiles": ("total", "quantiles", "kll"),
    "heavy_hitters": ("total", "top", "items"),
}
"""The fields of each kind."""
ITEMS = ("sketch", "maxItemsTracked", "itemDataType", "itemDataTypeDDL")
"""What Spark's own approx_top_k_accumulate returns."""
_BY_FIELDS = {fields: kind for kind, fields in LAYOUTS.items()}


def kind_of(fields: Iterable[str]) -> str | None:
    """Return which kind of sketch a struct of these fields is; None if it is none.

    >>> kind_of(["estimate", "lower", "upper", "theta"]), kind_of(["start", "end"])
    ('distinct', None)
    """
    return _BY_FIELDS.get(tuple(fields))


def is_ordered(fields: Iterable[str]) -> bool:
    """Return whether the bytes in a struct depend on the order of the rows, or on chance."""
    names = tuple(fields)
    return names == ITEMS or kind_of(names) in ("quantiles", "heavy_hitters")


def without_bytes(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what people read of a struct: of a sketch, its estimates.

    >>> without_bytes({"estimate": 3, "lower": 3, "upper": 3, "theta": b"..."})
    {'estimate': 3, 'lower': 3, 'upper': 3}
    """
    if tuple(value) == ITEMS:
        return {"maxItemsTracked": value["maxItemsTracked"]}
    kind = kind_of(value)
    return value if kind is None else {name: value[name] for name in LAYOUTS[kind][:-1]}


def exact_part(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is equal of two sketches of the same rows, in whatever order they came.

    The theta sketch of a distinct count depends on the values alone. The others compact their
    items by chance, or by order, once they have many: then only the number of rows is certain.

    >>> point = {"rank": 0.5, "estimate": 7.0, "lower": 6.0, "upper": 8.0}
    >>> exact_part({"total": 900, "quantiles": [point], "kll": b"..."})
    {'total': 900}
    """
    if tuple(value) == ITEMS:
        return {}
    kept = without_bytes(value)
    if kind_of(value) not in ("quantiles", "heavy_hitters"):
        return kept
    points = value["quantiles"] if "quantiles" in value else value["top"]
    is_exact = all(point["lower"] == point["upper"] for point in points or ())
    return kept if is_exact else {"total": value["total"]}


def _number(bytes_of: str, first: int, count: int) -> str:
    """Write how Spark reads a whole number of bytes, the least first, as a DOUBLE."""
    backwards = ", ".join(
        f"substring({bytes_of}, {at}, 1)" for at in range(first + count - 1, first - 1, -1)
    )
    return f"CAST(conv(hex(concat({backwards})), 16, 10) AS DOUBLE)"


def _let(name: str, value: str, text: str) -> str:
    return f"element_at(transform(array({value}), {name} -> {text}), 1)"


def _share(theta: str) -> str:
    """Write the share of all hashes that a theta sketch keeps: bytes are in one of two forms."""
    words = f"({_number(theta, 1, 1)} % 64)"
    is_compressed = f"substring({theta}, 2, 1) = X'04'"
    compressed = f"WHEN {is_compressed} AND {words} > 1 THEN {_number(theta, 9, 8)}"
    plain = f"WHEN NOT {is_compressed} AND {words} > 2 THEN {_number(theta, 17, 8)}"
    return f"CASE {compressed} {plain} ELSE power(2D, 63) END / power(2D, 63)"


def distinct_sql(theta: str) -> str:
    """Write the estimate of a theta sketch, with bounds."""

    def bound(sign: str, half: str) -> str:
        whole = f"((kept {half}) / share)"
        return f"{whole} + 0.5 * wide {sign} 0.5 * sqrt(wide * (wide + 4 * greatest({whole}, 0)))"

    lower = f"greatest(kept, floor({bound('-', '- 0.5')}))"
    upper = f"ceil({bound('+', '+ 0.5')})"
    fields = (
        "named_struct('estimate', found, "
        f"'lower', IF(share < 1, CAST({lower} AS BIGINT), found), "
        f"'upper', IF(share < 1, CAST({upper} AS BIGINT), found), 'theta', {theta})"
    )
    wide = f"{DEVIATIONS * DEVIATIONS} * (1 - share) / share"
    text = _let("wide", wide, fields)
    text = _let("kept", "round(found * share)", text)
    text = _let("share", _share(theta), text)
    text = _let("found", f"theta_sketch_estimate({theta})", text)
    return f"IF({theta} IS NULL, NULL, {text})"


def quantiles_sql(kll: str, ranks: Sequence[float], k: int) -> str:
    """Write the quantiles of a KLL sketch at some ranks, with bounds for this k."""
    above, power = RANK_ERROR
    off = above / k**power

    def value(rank: float) -> str:
        return f"kll_sketch_get_quantile_double({kll}, {min(max(rank, 0.0), 1.0)!r}D)"

    def bound(rank: float, end: float) -> str:
        # A smaller sketch was merged into it: all that is certain are the least and greatest value.
        return f"CASE WHEN n <= k THEN found WHEN k < {k} THEN {value(end)} ELSE {value(rank)} END"

    def point(rank: float) -> str:
        fields = (
            f"named_struct('rank', {float(rank)!r}D, 'estimate', found, "
            f"'lower', {bound(rank - off, 0.0)}, 'upper', {bound(rank + off, 1.0)})"
        )
        return _let("found", value(rank), fields)

    points = f"array({', '.join(map(point, ranks))})"
    text = _let("k", f"IF(n > 1, {_number(kll, 17, 2)}, 1D)", points)
    counted = f"kll_sketch_get_n_double({kll})"
    fields = f"named_struct('total', n, 'quantiles', IF(n > 0, {text}, array()), 'kll', {kll})"
    return f"IF({kll} IS NULL, NULL, {_let('n', counted, fields)})"


def heavy_hitters_sql(items: str, k: int, tracked: int) -> str:
    """Write the most frequent items of a sketch that tracks so many, with bounds."""
    # Spark's order of items that are equally frequent depends on that of the rows.
    found = (
        f"sort_array(transform(approx_top_k_estimate({items}, {tracked}), "
        "one -> named_struct('minus', -one.count, 'item', one.item)))"
    )
    points = (
        f"transform(slice({found}, 1, {k}), one -> named_struct('item', one.item, "
        "'estimate', -one.minus, 'lower', -one.minus - off, 'upper', -one.minus))"
    )
    text = f"named_struct('total', {_of_items(items, 17)}, 'top', {points}, 'items', {items})"
    return f"IF({items} IS NULL, NULL, {_let('off', greatest_error_sql(items), text)})"


def greatest_error_sql(items: str) -> str:
    """Write by how much a frequency of a sketch may be too great."""
    return _of_items(items, 25)


def _of_items(items: str, first: int) -> str:
    data = f"{items}.sketch"
    is_empty = f"{_number(data, 1, 1)} % 64 = 1"
    return f"IF({is_empty}, 0L, CAST({_number(data, first, 8)} AS BIGINT))"


SQL_FUNCTIONS = {"distinct_estimate": f"(theta BINARY) RETURN {distinct_sql('theta')}"}
"""Functions of SQL apps that Spark does not have, as it declares them."""


def named_in(query: str) -> Iterable[str]:
    """Yield how Spark declares those of our functions that a query may call."""
    for name, text in SQL_FUNCTIONS.items():
        if name in query.lower():
            yield f"CREATE OR REPLACE TEMPORARY FUNCTION {name}{text}"
