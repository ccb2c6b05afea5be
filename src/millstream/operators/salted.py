"""Aggregation in two stages, so that the rows of one key are not all in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.declare import location_of_caller
from millstream.errors import OperatorOptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location

_CALL = "ms.salted"
_SALT = "_salt"
_MOST = 4096


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """An aggregate, taken apart: what is worked out for each salt, and how that is put together."""

    parts: tuple[str, ...]
    whole: str
    """Over the parts, called {0} and {1}."""
    distinct: str | None = None
    """What must be on one salt if it is equal."""


def salted(
    rows: DataFrame,
    by: str | Sequence[str],
    aggregates: Mapping[str, str],
    *,
    salts: int = 16,
) -> DataFrame:
    """Aggregate in two stages: for each key and salt, then for each key; exactly as in one.

    The salt of a row is a hash of it, so a retried batch has the same. Spark adds up counts, sums
    and the like before it moves rows, and needs no salt for them; what it cannot add up before, it
    moves to one place for each key: with a salt, to several. In a stream both stages wait for the
    watermark: the keys need a window, and the table is in append mode.

    Args:
        rows: Rows, of which many have the same key.
        by: Columns of the key.
        aggregates: By name, in SQL: `count(*)`, `count(x)`, `count(DISTINCT x)`, `sum(x)`,
            `avg(x)`, `min(x)`, `max(x)`; x may be any expression, and all that are DISTINCT the
            same.
        salts: In how many places the rows of a key may be.

    Raises:
        DeclarationError: A column is missing, or an aggregate cannot be taken apart exactly.
    """
    at = location_of_caller()
    from pyspark.sql import functions as F

    from millstream.operators.columns import hold_columns, names_of, quoted

    keys = names_of(by)
    hold_columns(rows, keys, call=_CALL, option="by", at=at)
    if isinstance(salts, bool) or not isinstance(salts, int) or not 1 <= salts <= _MOST:
        why, instead = "not a number of places", f"say a whole number from 1 to {_MOST}"
        raise OperatorOptionError(_CALL, "salts", salts, why=why, instead=instead, at=at)
    kinds = _kinds(rows, aggregates, at)
    taken = {name: _taken_apart(text, kinds[name], at) for name, text in aggregates.items()}
    equal = {one.distinct for one in taken.values() if one.distinct is not None}
    if len(equal) > 1 or not taken:
        told = "nothing is to be worked out" if not taken else "two of them are DISTINCT"
        instead = "name at least one, and have all that are DISTINCT over the same expression"
        raise OperatorOptionError(
            _CALL, "aggregates", dict(aggregates), why=told, instead=instead, at=at
        )
    hashed = [F.expr(equal.pop())] if equal else [quoted(name) for name in rows.columns]
    salt = F.pmod(F.xxhash64(*hashed), F.lit(salts)).alias(_SALT)
    grouped = [quoted(name) for name in keys]
    parts = rows.groupBy(*grouped, salt).agg(*_parts(taken))
    whole = [
        F.expr(one.whole.format(*_names(name, one))).cast(kinds[name]).alias(name)
        for name, one in taken.items()
    ]
    return parts.groupBy(*grouped).agg(*whole)


def _names(name: str, one: _Aggregate) -> list[str]:
    return [f"`_{number}_{name}`" for number in range(len(one.parts))]


def _parts(taken: Mapping[str, _Aggregate]) -> list[Column]:
    from pyspark.sql import functions as F

    return [
        F.expr(part).alias(called.strip("`"))
        for name, one in taken.items()
        for part, called in zip(one.parts, _names(name, one), strict=True)
    ]


def _kinds(rows: DataFrame, aggregates: Mapping[str, str], at: Location) -> dict[str, str]:
    """What types the aggregates have in one stage."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from millstream.spark.words import words_of

    try:
        told = rows.groupBy().agg(*(F.expr(t).alias(n) for n, t in aggregates.items()))
        return dict(told.dtypes)
    except PySparkException as error:
        instead = "write aggregates in Spark SQL over the columns of the rows"
        raise OperatorOptionError(
            _CALL, "aggregates", dict(aggregates), why=words_of(error), instead=instead, at=at
        ) from error


def _taken_apart(text: str, kind: str, at: Location) -> _Aggregate:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        call = parse_one(text, dialect="spark")
    except SqlglotError:
        call = None
    inner = call.this if isinstance(call, exp.AggFunc) else None
    if isinstance(call, exp.Count) and isinstance(inner, exp.Distinct):
        [*values] = inner.expressions
        if len(values) == 1:
            value = values[0].sql(dialect="spark")
            return _Aggregate((f"size(collect_set({value}))",), "sum({0})", value)
    elif isinstance(call, exp.Count):
        return _Aggregate((text,), "sum({0})")
    elif isinstance(call, exp.Avg) and not isinstance(inner, exp.Distinct):
        value = call.this.sql(dialect="spark")
        # Spark's mean of whole numbers is over doubles, which do not overflow.
        total = f"sum(CAST({value} AS DOUBLE))" if kind == "double" else f"sum({value})"
        return _Aggregate((total, f"count({value})"), "sum({0}) / sum({1})")
    elif isinstance(call, exp.Sum | exp.Min | exp.Max) and not isinstance(inner, exp.Distinct):
        return _Aggregate((text,), f"{call.sql_name().lower()}({{0}})")
    raise OperatorOptionError(
        _CALL,
        "aggregates",
        text,
        why="it cannot be put together from parts",
        instead="use count, count(DISTINCT x), sum, avg, min and max",
        at=at,
    )
