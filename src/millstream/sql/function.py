"""All functions of Spark that have a translation."""

from __future__ import annotations

from millstream.sql import aggregate, cast, dates, nested, number, numbers, strings

FUNCTIONS = {
    **aggregate.FUNCTIONS,
    **dates.FUNCTIONS,
    **nested.FUNCTIONS,
    **numbers.FUNCTIONS,
    **strings.FUNCTIONS,
}

MACROS = (*cast.MACROS, *number.MACROS, *numbers.MACROS, *strings.MACROS)
"""What must be made in DuckDB first."""
