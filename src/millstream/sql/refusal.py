"""Saying which part of a query cannot be translated, and where it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from millstream.errors import Location, MillstreamError, closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp


def place(node: exp.Expr) -> Location | None:
    """Say where in the query something is written."""
    for part in node.walk():
        if "line" in part.meta:
            # sqlglot gives the column of the last character.
            length = part.meta["end"] - part.meta["start"]
            return Location("query", part.meta["line"], part.meta["col"] - length)
    return None


def unknown_column(name: str, known: Sequence[str], node: exp.Expr) -> MillstreamError:
    """Say that a query names a column that is not there."""
    columns = listed(set(known))
    nearest = closest(name, known)
    return fault("UNKNOWN_COLUMN", at=place(node), name=name, nearest=nearest, known=columns)


def refuse(node: exp.Expr, what: str = "") -> NoReturn:
    """Say that only Spark can answer this."""
    raise fault("SQL_NOT_TRANSLATED", at=place(node), construct=what or node.sql("spark"))
