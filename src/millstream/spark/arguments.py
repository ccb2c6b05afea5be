"""What a Python function was called with when it raised in a worker of Spark's."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

CALLED_WITH = "called with "
"""The beginning of the note that a worker adds to an error."""

_OURS = ("pyspark.", "millstream.")
_LIBRARY = re.compile(r"[/\\](?:site-packages|python3\.\d+)[/\\]|[/\\]pyspark\.zip|^<frozen ")
_LONGEST = 200


def note_arguments(error: BaseException) -> None:
    """Add to an error what the user's innermost function was called with."""
    frames = [frame for frame in _frames(error) if _is_users(frame)]
    if not frames:
        return
    named = inspect.getargvalues(frames[-1])
    values = (f"{name}={named.locals[name]!r}" for name in named.args if name in named.locals)
    if shown := ", ".join(values):
        error.add_note(CALLED_WITH + shown.replace("\n", " ")[:_LONGEST])


def is_library(file: str) -> bool:
    """Whether a file of a trace is Python's own or that of an installed package.

    >>> is_library("/usr/lib/python3.11/json/decoder.py"), is_library("apps/orders.py")
    (True, False)
    """
    return _LIBRARY.search(file) is not None


def _frames(error: BaseException) -> list[FrameType]:
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def _is_users(frame: FrameType) -> bool:
    module = f"{frame.f_globals.get('__name__', '')}."
    return not module.startswith(_OURS) and not is_library(frame.f_code.co_filename)
