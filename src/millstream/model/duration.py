"""Lengths of time as users write them, and the moment that times are counted from."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SECONDS: dict[str, float] = {
    name: seconds
    for names, seconds in {
        "ms msec millisecond milliseconds": 0.001,
        "s sec second seconds": 1,
        "m min minute minutes": 60,
        "h hr hour hours": 3600,
        "d day days": 86400,
        "week weeks": 604800,
    }.items()
    for name in names.split()
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")


def parse_duration(text: str) -> timedelta:
    """Read a length of time such as "10 minutes", "1 hour 30 minutes", "60s" or "500 ms".

    Raises:
        ValueError: The text is not a positive or zero length of time.

    >>> parse_duration("1 hour 30 minutes")
    datetime.timedelta(seconds=5400)
    >>> parse_duration("60s")
    datetime.timedelta(seconds=60)
    """
    end, seconds = 0, 0.0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            break
        unit = part[2].lower()
        if unit not in _SECONDS:
            break
        seconds += float(part[1]) * _SECONDS[unit]
        end = part.end()
    if end == 0 or end < len(text):
        raise ValueError(text)
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(text) from None


def to_spark(length: timedelta) -> str:
    """Write a length of time as a Spark interval.

    >>> to_spark(timedelta(minutes=1))
    '60000 milliseconds'
    """
    return f"{round(length.total_seconds() * 1000)} milliseconds"


def to_text(length: timedelta) -> str:
    """Write a length of time as users do, in the largest unit that has no remainder.

    >>> to_text(timedelta(days=365)), to_text(timedelta(hours=1)), to_text(timedelta(seconds=90))
    ('365 days', '1 hour', '90 seconds')
    """
    seconds = length.total_seconds()
    units = (("day", 86400), ("hour", 3600), ("minute", 60))
    unit, size = next((u for u in units if seconds >= u[1] and not seconds % u[1]), ("second", 1))
    number = f"{seconds / size:.6f}".rstrip("0").rstrip(".")
    return f"{number} {unit}{'' if seconds == size else 's'}"
