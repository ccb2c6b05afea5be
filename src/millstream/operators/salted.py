"""Aggregation in two stages, so that the rows of one key are not all in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.operators.fault import option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location

_CALL = "ms.salted"
_SALT = "_salt"
_MOST = 4096


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """An aggregate in two stages: what is computed for each salt, and how that is combined."""

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
    moves to one task for each key: with a salt, to several. In a stream both stages wait for the
    watermark: the keys need a window, and the table is in append mode.

    Args:
        rows: Rows, of which many have the same key.
        by: Columns of the key.
        aggregates: By name, in SQL: `count(*)`, `count(x)`, `count(DISTINCT x)`, `sum(x)`,
            `avg(x)` but of a DECIMAL, `min(x)`, `max(x)`; x may be any expression, and all that are
            DISTINCT the same.
        salts: In how many places the rows of a key may be.

    Raises:
        DeclarationError: A column is missing, or an aggregate is not exact in two stages.
    """
    at = location_of_caller()
    from pyspark.sql import functions as F

    from millstream.operators.columns import check_columns, free_name, names_of, quoted

    keys = names_of(by)
    check_columns(rows, keys, call=_CALL, option="by", at=at)
    if isinstance(salts, bool) or not isinstance(salts, int) or not 1 <= salts <= _MOST:
        why, instead = "not a number of places", f"say a whole number from 1 to {_MOST}"
        raise option_fault(_CALL, "salts", salts, why=why, instead=instead, at=at)
    _check_names(aggregates, keys, at)
    kinds = _kinds(rows, aggregates, at)
    split = {name: _split(text, kinds[name], at) for name, text in aggregates.items()}
    equal = {one.distinct for one in split.values() if one.distinct is not None}
    if len(equal) > 1:
        instead = "have all that are DISTINCT over the same expression"
        why = "two of them are DISTINCT"
        raise option_fault(_CALL, "aggregates", dict(aggregates), why=why, instead=instead, at=at)
    hashed = [F.expr(equal.pop())] if equal else _hashed(rows)
    salt = F.pmod(F.xxhash64(*hashed), F.lit(salts)).alias(free_name(_SALT, keys))
    grouped = [quoted(name) for name in keys]
    parts = rows.groupBy(*grouped, salt).agg(*_parts(split))
    whole = [
        F.expr(one.whole.format(*_names(name, one))).cast(kinds[name]).alias(name)
        for name, one in split.items()
    ]
    return parts.groupBy(*grouped).agg(*whole)


def _check_names(aggregates: Mapping[str, str], keys: Sequence[str], at: Location) -> None:
    """Check that aggregates are texts by name, and that no key has such a name."""
    why, instead = "", 'name each in SQL: {"n": "count(*)"}'
    if not isinstance(aggregates, Mapping):
        why = "not aggregates by name"
    elif not aggregates:
        why = "nothing is to be worked out"
    elif not all(isinstance(text, str) for text in aggregates.values()):
        why = "not each is a text"
    elif doubled := {key.lower() for key in keys} & {name.lower() for name in aggregates}:
        why = f"the answer would have {min(doubled)!r} twice, which is a column of the key"
        instead = "give the aggregate another name"
    if why:
        raise option_fault(_CALL, "aggregates", aggregates, why=why, instead=instead, at=at)


def _hashed(rows: DataFrame) -> list[Column]:
    """The columns that a row's salt is a hash of: Spark hashes no maps."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import MapType, VariantType

    from millstream.operators.columns import has_within, quoted

    kept = (
        f.name for f in rows.schema.fields if not has_within(f.dataType, (MapType, VariantType))
    )
    return [quoted(name) for name in kept] or [F.lit(0)]


def _names(name: str, one: _Aggregate) -> list[str]:
    return [f"`_{number}_{name}`" for number in range(len(one.parts))]


def _parts(split: Mapping[str, _Aggregate]) -> list[Column]:
    from pyspark.sql import functions as F

    return [
        F.expr(part).alias(called.strip("`"))
        for name, one in split.items()
        for part, called in zip(one.parts, _names(name, one), strict=True)
    ]


def _kinds(rows: DataFrame, aggregates: Mapping[str, str], at: Location) -> dict[str, str]:
    """Return the types that the aggregates have in one stage."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from millstream.spark.message import message_of

    try:
        typed = rows.groupBy().agg(*(F.expr(t).alias(n) for n, t in aggregates.items()))
        return dict(typed.dtypes)
    except PySparkException as error:
        instead = "write aggregates in Spark SQL over the columns of the rows"
        raise option_fault(
            _CALL, "aggregates", dict(aggregates), why=message_of(error), instead=instead, at=at
        ) from error


def _split(text: str, kind: str, at: Location) -> _Aggregate:
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
            return _Aggregate((f"size(collect_set({value}))",), "coalesce(sum({0}), 0)", value)
    elif isinstance(call, exp.Count):
        return _Aggregate((text,), "coalesce(sum({0}), 0)")
    elif isinstance(call, exp.Avg) and kind.startswith("decimal"):
        why = "it is rounded by rules of its own if it is a DECIMAL"
        instead = "have its sum and its count and divide them, or take the avg of a DOUBLE"
        raise option_fault(_CALL, "aggregates", text, why=why, instead=instead, at=at)
    elif isinstance(call, exp.Avg) and not isinstance(inner, exp.Distinct):
        value = call.this.sql(dialect="spark")
        # Spark's mean of whole numbers is over doubles, which do not overflow.
        total = f"sum(CAST({value} AS DOUBLE))" if kind == "double" else f"sum({value})"
        return _Aggregate((total, f"count({value})"), "sum({0}) / sum({1})")
    elif isinstance(call, exp.Sum | exp.Min | exp.Max) and not isinstance(inner, exp.Distinct):
        return _Aggregate((text,), f"{call.sql_name().lower()}({{0}})")
    raise option_fault(
        _CALL,
        "aggregates",
        text,
        why="it cannot be put together from parts",
        instead="use count, count(DISTINCT x), sum, avg, min and max",
        at=at,
    )
