"""Saying which part of a query cannot be translated, and where it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from millstream.errors import Location, SqlNotTranslatedError

if TYPE_CHECKING:
    from sqlglot import exp


def place(node: exp.Expr) -> Location | None:
    """Say where in the query something is written."""
    for part in node.walk():
        if "line" in part.meta:
            # sqlglot gives the column of the last character.
            length = part.meta["end"] - part.meta["start"]
            return Location("query", part.meta["line"], part.meta["col"] - length)
    return None


def refuse(node: exp.Expr, what: str = "") -> NoReturn:
    """Say that only Spark can answer this."""
    raise SqlNotTranslatedError(what or node.sql("spark"), at=place(node))
