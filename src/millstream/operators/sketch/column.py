"""Columns of sketches: the bytes that Spark computes become a struct with estimates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from millstream.operators.fault import option_fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    from millstream.errors import Location

    ColumnOrName = Column | str


def as_column(column: ColumnOrName) -> Column:
    """Return a column, which may be passed by its name."""
    from pyspark.sql import functions as F

    return F.col(column) if isinstance(column, str) else column


def with_estimates(data: Column, text: Callable[[str], str]) -> Column:
    """Apply SQL to a column, which SQL calls `data_`."""
    from pyspark.sql import functions as F

    applied = F.expr(f"data_ -> {text('data_')}")
    return F.element_at(F.call_function("transform", F.array(data), applied), 1)


def check_error(call: str, error: object, least: float, at: Location) -> float:
    """Check the error that a sketch may have.

    Raises:
        OPERATOR_OPTION: It is not a share, or so small that no sketch is.
    """
    is_number = isinstance(error, int | float) and not isinstance(error, bool)
    if not is_number or not least <= float(str(error)) < 1 or math.isnan(float(str(error))):
        why = "not an error that a sketch can have"
        instead = f"say a share from {least:g} to below 1: error=0.01 is one per cent"
        raise option_fault(call, "error", error, why=why, instead=instead, at=at)
    return float(str(error))
