"""How views are written as JSON, and the shapes that most commands share."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.model.sketch import without_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.errors import MillstreamError


@dataclass(frozen=True, slots=True)
class FaultView:
    """An error: what, where and how to fix it."""

    code: str
    what: str
    fix: str
    file: str | None = None
    line: int | None = None

    @staticmethod
    def of(error: MillstreamError) -> FaultView:
        """Show an error."""
        file, line = (error.at.file, error.at.line) if error.at else (None, None)
        return FaultView(error.code, error.what, error.fix, file, line)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]


def to_json(view: object) -> str:
    """Write a view as one line of JSON."""
    return json.dumps(_shape(view), default=to_text, ensure_ascii=False)


def _shape(value: object) -> object:
    """Return the fields of a view, and the judgements (`is_…`) it makes of them."""
    if isinstance(value, Mapping):
        return {str(key): _shape(item) for key, item in without_bytes(value).items()}
    if isinstance(value, list | tuple):
        return [_shape(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no numbers for these.
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if not is_dataclass(value):
        return value
    names = [f.name for f in fields(value)]
    names += [n for n in dir(value) if n.startswith("is_") and n not in names]
    return {name: _shape(getattr(value, name)) for name in names}


def to_text(value: object) -> str:
    """Write one value that JSON has no type for, as a string."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, timedelta):
        return f"PT{value.total_seconds():g}S"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
