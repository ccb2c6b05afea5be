"""Errors about a part of a query, with its location."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from millstream.errors import Location, MillstreamError, closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp


def location_of(node: exp.Expr) -> Location | None:
    """Return the location of a part of the query."""
    for part in node.walk():
        if "line" in part.meta:
            # sqlglot gives the column of the last character.
            length = part.meta["end"] - part.meta["start"]
            return Location("query", part.meta["line"], part.meta["col"] - length)
    return None


def unknown_column(name: str, known: Sequence[str], node: exp.Expr) -> MillstreamError:
    """Return the error for a column that is not there."""
    columns = listed(set(known))
    nearest = closest(name, known)
    return fault("UNKNOWN_COLUMN", at=location_of(node), name=name, nearest=nearest, known=columns)


def refuse(node: exp.Expr, what: str = "") -> NoReturn:
    """Raise that only Spark can answer this."""
    raise fault("SQL_NOT_TRANSLATED", at=location_of(node), construct=what or node.sql("spark"))
