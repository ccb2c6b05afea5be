"""What a user's function says of itself: where it stands, and what it reads."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from millstream.declare.notebook import place_of
from millstream.errors import Location

if TYPE_CHECKING:
    from collections.abc import Callable


def location_of(function: Callable[..., Any]) -> Location:
    """Return the location of a function."""
    code = inspect.unwrap(function).__code__
    return Location(place_of(code.co_filename), code.co_firstlineno)


def location_of_caller(depth: int = 2) -> Location:
    """Return the line that called the caller of this function."""
    frame = sys._getframe(depth)
    return Location(place_of(frame.f_code.co_filename), frame.f_lineno)


def inputs_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """List the datasets a function reads: its parameters.

    >>> def clean(readings, devices): ...
    >>> inputs_of(clean)
    ('readings', 'devices')
    """
    return tuple(inspect.signature(function).parameters)
