"""Errors that operators share: of their options, and of the columns that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.errors import Location, MillstreamError


def option_fault(
    call: str, option: str, got: object, *, why: str, instead: str, at: Location
) -> MillstreamError:
    """Refuse the value of an option, or say that the option is missing."""
    has = f"has no {option}" if got is None else f"has {option}={got!r}"
    return fault("OPERATOR_OPTION", at=at, call=call, said=has, why=why, instead=instead)


def column_fault(
    call: str,
    column: str,
    *,
    option: str = "column",
    why: str,
    columns: Sequence[str],
    at: Location,
) -> MillstreamError:
    """Refuse a column that the rows do not have, or that an operator cannot use."""
    return fault(
        "OPERATOR_COLUMN",
        at=at,
        call=call,
        option=option,
        column=column,
        why=why,
        nearest=closest(column, columns),
        columns=listed(columns),
    )
