"""Totals of all rows, estimated from a sample, with an interval of confidence."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.operators.fault import option_fault
from millstream.operators.sampling.chance import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millstream.errors import Location


def estimate(column: Column | str, *, confidence: float = 0.95) -> Column:
    """Estimate the sum of a column over all rows from a sample: an aggregate.

    Use it on rows of `ms.sampling.sample`, `stratified`, `weighted` and `weighted_reservoir`. The
    result is a struct of `estimate`, `lower` and `upper`; `F.lit(1)` estimates how many rows there
    are. Keys are chosen independently: if a key has several rows, add them up first, or the
    interval is too narrow. The interval is that of a normal distribution: with less than about
    thirty rows, or a few that outweigh all others, it is rougher than it says.

    Args:
        column: Numbers; nulls count as 0.
        confidence: How often the interval holds the sum.

    Raises:
        DeclarationError: The confidence is not a share.
    """
    from pyspark.sql import functions as F

    deviations = _deviations(confidence, "ms.sampling.estimate", location_of_caller())
    value, weight = _value(column), F.col(WEIGHT)
    variance = F.sum(weight * (weight - 1) * value * value)
    return _interval(F.sum(weight * value), F.sqrt(variance), deviations)


def estimate_of_reservoir(column: Column | str, *, confidence: float = 0.95) -> Column:
    """Estimate the sum of a column over all rows from one reservoir of them: an aggregate.

    Use it on the rows of one group of `ms.sampling.reservoir`. The result is a struct of
    `estimate`, `lower` and `upper`; the bounds are null if one row stands for several. How many
    rows there are needs no estimate: it is `F.sum("weight")`.

    Args:
        column: Numbers; nulls count as 0.
        confidence: How often the interval holds the sum.

    Raises:
        DeclarationError: The confidence is not a share.
    """
    from pyspark.sql import functions as F

    call = "ms.sampling.estimate_of_reservoir"
    deviations = _deviations(confidence, call, location_of_caller())
    value, weight = _value(column), F.col(WEIGHT)
    is_part = F.sum(weight * (weight - 1)) > 0
    # One row of several says nothing of how they differ: the bounds are null.
    spread = F.when(is_part, F.var_samp(value)).otherwise(0.0)
    # Rows are drawn without putting them back: the more of all are drawn, the less is unknown.
    variance = F.sum(weight * (weight - 1)) * spread
    return _interval(F.sum(weight * value), F.sqrt(variance), deviations)


def _value(column: Column | str) -> Column:
    from pyspark.sql import functions as F

    found = F.col(column) if isinstance(column, str) else column
    return F.coalesce(found.cast("double"), F.lit(0.0))


def _interval(total: Column, deviation: Column, deviations: float) -> Column:
    from pyspark.sql import functions as F

    off = deviation * F.lit(deviations)
    return F.struct(
        total.alias("estimate"), (total - off).alias("lower"), (total + off).alias("upper")
    )


def _deviations(confidence: object, call: str, at: Location) -> float:
    is_number = isinstance(confidence, float) and 0 < confidence < 1
    if not is_number:
        why, instead = "not a share", "say a number between 0 and 1: 0.95 holds 95 times of 100"
        raise option_fault(call, "confidence", confidence, why=why, instead=instead, at=at)
    return NormalDist().inv_cdf(0.5 + float(str(confidence)) / 2)
