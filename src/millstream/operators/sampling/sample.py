"""Rows chosen one by one, each by the hash of its key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.operators.fault import option_fault
from millstream.operators.sampling.chance import WEIGHT, chance, check_amount, check_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location


def sample(
    rows: DataFrame, fraction: float, *, by: str | Sequence[str], seed: int = 0
) -> DataFrame:
    """Keep a share of the keys, with all of their rows, each with its `weight`.

    The hash of a key decides: a key is in the sample always or never, in a batch as in a stream,
    and in every table that is sampled by the same key and seed.

    Args:
        rows: Rows; a stream may be one.
        fraction: The share, above 0 and at most 1.
        by: Columns of the key.
        seed: Another one chooses other keys.

    Raises:
        DeclarationError: A column is missing, or the fraction is not a share.
    """
    at, call = location_of_caller(), "ms.sampling.sample"
    from pyspark.sql import functions as F

    from millstream.operators.columns import names_of

    names = names_of(by)
    check_sample(rows, names, seed, call=call, at=at)
    return _kept(rows, F.lit(_share(fraction, "fraction", call, at)), names, seed)


def stratified(
    rows: DataFrame,
    rates: Mapping[object, float],
    *,
    per: str,
    by: str | Sequence[str],
    default: float = 1.0,
    seed: int = 0,
) -> DataFrame:
    """Keep a share of the keys of each stratum, with the `weight` of each row.

    Args:
        rows: Rows; a stream may be one.
        rates: The share by the value of the stratum.
        per: The column of the stratum.
        by: Columns of the key.
        default: The share of strata that are not named; 0 leaves them out.
        seed: Another one chooses other keys.

    Raises:
        DeclarationError: A column is missing, or a rate is not a share.
    """
    at, call = location_of_caller(), "ms.sampling.stratified"
    from pyspark.sql import functions as F

    from millstream.operators.columns import check_columns, names_of, quoted

    names = names_of(by)
    check_sample(rows, names, seed, call=call, at=at)
    check_columns(rows, [per], call=call, option="per", at=at)
    if not isinstance(rates, Mapping) or not rates:
        why, instead = "not a rate for each stratum", 'say each by its value: {"DE": 0.1}'
        raise option_fault(call, "rates", rates, why=why, instead=instead, at=at)
    rate = F.lit(default if default == 0 else _share(default, "default", call, at))
    for value, share in rates.items():
        chosen = F.lit(_share(share, "rates", call, at))
        rate = F.when(quoted(per).eqNullSafe(F.lit(value)), chosen).otherwise(rate)
    return _kept(rows, rate, names, seed)


def weighted(
    rows: DataFrame,
    amount: str,
    *,
    every: float,
    by: str | Sequence[str],
    seed: int = 0,
) -> DataFrame:
    """Keep rows with a chance in proportion to an amount, with the `weight` of each.

    A row of `every` or more is always kept, one of half as much every other time, one of nothing
    never. So large amounts are all there, and totals are estimated from few rows.

    Args:
        rows: Rows; a stream may be one.
        amount: A column of numbers; rows where it is negative, NaN or null are left out.
        every: The amount of which one row is kept.
        by: Columns of the key.
        seed: Another one chooses other rows.

    Raises:
        DeclarationError: A column is missing or of another type, or `every` is not above 0.
    """
    at, call = location_of_caller(), "ms.sampling.weighted"
    from pyspark.sql import functions as F

    from millstream.operators.columns import names_of, quoted

    names = names_of(by)
    check_sample(rows, names, seed, call=call, at=at)
    check_amount(rows, amount, call=call, at=at)
    if isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < math.inf:
        why, instead = "not an amount", "say an amount above 0: every=1000 keeps one row of 1000"
        raise option_fault(call, "every", every, why=why, instead=instead, at=at)
    value = quoted(amount).cast("double")
    is_none = value.isNull() | F.isnan(value)
    # The least of a null and 1 is 1.
    share = F.when(is_none, 0.0).otherwise(F.least(value / F.lit(float(every)), F.lit(1.0)))
    return _kept(rows, share, names, seed)


def _kept(rows: DataFrame, share: Column, names: Sequence[str], seed: int) -> DataFrame:
    """Keep rows whose chance is below their share."""
    from pyspark.sql import functions as F

    weight = F.try_divide(F.lit(1.0), share)
    return rows.where(chance(names, seed) < share).select("*", weight.alias(WEIGHT))


def _share(share: object, option: str, call: str, at: Location) -> float:
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if not is_number or not 0 < float(str(share)) <= 1:
        why, instead = "not a share", "say a number above 0 and at most 1: 0.01 is one per cent"
        raise option_fault(call, option, share, why=why, instead=instead, at=at)
    return float(str(share))
