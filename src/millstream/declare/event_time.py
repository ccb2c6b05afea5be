"""What users write as event time: a column, an expression, or an expression with a name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.errors import SchemaError
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from millstream.model.connector import Connector

DEFAULT_NAME = "event_time"
"""The column of an expression that has no name."""

_NAME = re.compile(r"\w+")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


def event_time_of(option: object, connector: Connector) -> tuple[str | None, str | None]:
    """Return the column of an event time, and the expression if landing must compute it.

    Raises:
        ValueError: The option is no text and not one name with its expression.
    """
    if option is None:
        return None, None
    if isinstance(option, str):
        column = _column(option, connector)
        return (column, None) if column else (DEFAULT_NAME, option)
    match [*option.items()] if isinstance(option, Mapping) else option:
        case [(str(name), str(expression))]:
            pass
        case [_, _, *_] as several:
            why = f"has {len(several)} names"
            raise ValueError(why)
        case _:
            why = "is no text"
            raise ValueError(why)
    return (name, None) if _column(expression, connector) == name else (name, expression)


def _column(text: str, connector: Connector) -> str | None:
    """Return the column that a text names, if it is a name."""
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1].replace("``", "`")
    if _NAME.fullmatch(text):
        return text
    try:
        return text if text in Schema.parse(connector.schema).names else None
    except SchemaError:
        return None
