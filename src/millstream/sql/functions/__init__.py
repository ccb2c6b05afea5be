"""The functions of Spark that have a translation, by what they work on."""

from __future__ import annotations

from millstream.sql import arithmetic, cast
from millstream.sql.functions import aggregate, dates, nested, numbers, sketches, strings

FUNCTIONS = {
    **aggregate.FUNCTIONS,
    **dates.FUNCTIONS,
    **nested.FUNCTIONS,
    **numbers.FUNCTIONS,
    **sketches.FUNCTIONS,
    **strings.FUNCTIONS,
}

MACROS = (*cast.MACROS, *arithmetic.MACROS, *numbers.MACROS, *strings.MACROS)
"""What must be created in DuckDB first."""
