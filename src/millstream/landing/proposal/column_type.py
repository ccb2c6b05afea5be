"""The narrowest type that values of a sample have in common."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from millstream.landing.proposal.proposal import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_FLOAT = re.compile(r"[+-]?\d*\.?\d+(?:[eE][+-]?\d+)?", re.ASCII)
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)
"""A number that begins with a zero: a code, as of a post."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def typed(cell: str | None) -> Any:
    """Read a piece of text as JSON would have it."""
    if not cell:
        return None
    if _INTEGER.fullmatch(cell):
        return int(cell)
    if _FLOAT.fullmatch(cell) and not _CODE.fullmatch(cell) and math.isfinite(float(cell)):
        return float(cell)
    return {"true": True, "false": False}.get(cell.lower(), cell)


def common_type(values: Iterable[Any]) -> str:
    """Return the narrowest type that all values have; text if they have none in common."""
    kinds: dict[str, list[Any]] = {}
    for value in values:
        if value is not None:
            kinds.setdefault(_kind(value), []).append(value)
    match sorted(kinds):
        case ["STRUCT"]:
            fields = list(dict.fromkeys(name for v in kinds["STRUCT"] for name in v))
            if not fields or len({name.lower() for name in fields}) < len(fields):
                return "MAP<STRING, STRING>"
            of = ((n, common_type(v.get(n) for v in kinds["STRUCT"])) for n in fields)
            return f"STRUCT<{', '.join(f'{quoted(n)}: {kind}' for n, kind in of)}>"
        case ["ARRAY"]:
            return f"ARRAY<{common_type(element for v in kinds['ARRAY'] for element in v)}>"
        case ["BIGINT", "DOUBLE"]:
            return "DOUBLE"
        case [only]:
            return only
    return "STRING"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "BIGINT" if -(2**63) <= value < 2**63 else "STRING"
    if isinstance(value, float):
        return "DOUBLE"
    if isinstance(value, dict | list):
        return "STRUCT" if isinstance(value, dict) else "ARRAY"
    if moment_of(value) is not None:
        return "TIMESTAMP"
    return "DATE" if _is_day(value) else "STRING"


def moment_of(value: object) -> datetime | None:
    """Read a moment with date and time, as ISO 8601 writes it."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if not isinstance(value, str) or not _MOMENT.match(value):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _is_day(value: object) -> bool:
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True
