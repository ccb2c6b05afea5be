"""The JSON that a request brings, each field checked."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from fastapi import Request  # noqa: TC002 - FastAPI reads annotations

from millstream.errors import fault

Kind = TypeVar("Kind")


async def read_body(request: Request) -> dict[str, Any]:
    """Read the object that a request brings.

    Raises:
        CONSOLE_BODY: It brings none.
    """
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise fault("CONSOLE_BODY", why="it is not a JSON object")
    return found


def field_of(
    body: dict[str, Any], name: str, kind: type[Kind], default: Kind | None = None
) -> Kind:
    """Return a field; `default` if it is not there.

    Raises:
        CONSOLE_BODY: It is of another type, or lacks and has no default.
    """
    value = body.get(name, default)
    # bool is an int in Python, and is not meant as one.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise fault("CONSOLE_BODY", why=f"{name!r} is not a {kind.__name__}")
    return value
