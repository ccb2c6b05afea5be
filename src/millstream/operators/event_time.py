"""The event time of rows, and lengths of time in the options of operators."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.errors import fault, listed
from millstream.model.duration import parse_duration
from millstream.operators.fault import column_fault, option_fault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.errors import Location

WATERMARK = "spark.watermarkDelayMs"
"""The metadata by which Spark marks the event-time column."""

BEHIND = "millstream.behindUs"
"""The metadata of an event time that a join has held back, in a batch up to a frontier."""

_MICROSECOND = timedelta(microseconds=1)


def behind_us(rows: DataFrame, time: str) -> int:
    """Return how far the rows of a join are behind the frontier: what reads them waits longer."""
    return int((rows.schema[time].metadata or {}).get(BEHIND, 0))


def event_time(
    rows: DataFrame,
    chosen: str | None,
    *,
    call: str,
    named: str = "the rows",
    waits: bool = True,
    at: Location,
) -> str:
    """Return the event-time column: the one that the user names, or the only TIMESTAMP.

    Args:
        rows: Whose event time it is.
        chosen: The column that the user names.
        call: The operator, as users call it.
        named: What the user would call the rows.
        waits: Whether the operator waits for earlier rows of a stream, and so needs a watermark.
        at: The line of the user.

    Raises:
        OPERATOR_COLUMN: The named column is not a TIMESTAMP of the rows.
        EVENT_TIME_UNKNOWN: No column is named, and there are several, or none.
        NO_WATERMARK: The rows are a stream, and have no watermark there.
    """
    from pyspark.sql.types import TimestampType

    times = [f.name for f in rows.schema.fields if isinstance(f.dataType, TimestampType)]
    if chosen is None and len(times) != 1:
        raise fault(
            "EVENT_TIME_UNKNOWN",
            at=at,
            rows=named,
            call=call,
            count=len(times),
            candidates=listed(times),
            say='event_time="…"',
        )
    name = times[0] if chosen is None else chosen
    if name not in times:
        raise column_fault(
            call,
            name,
            option="event_time",
            why=f"which is not a TIMESTAMP of {named}",
            columns=rows.columns,
            at=at,
        )
    if waits and rows.isStreaming and WATERMARK not in (rows.schema[name].metadata or {}):
        raise fault("NO_WATERMARK", at=at, call=call, column=name, rows=named)
    return name


def length_us(text: str | None, option: str, *, call: str, why: str, at: Location) -> int:
    """Read a length of time, in microseconds; Spark's watermarks know whole milliseconds.

    Raises:
        OPERATOR_OPTION: It is missing, or is not a length of time.
    """
    instead = f'say how long, for instance {option}="1 hour"'
    if text is None:
        raise option_fault(call, option, None, why=why, instead=instead, at=at)
    try:
        length = parse_duration(text)
    except (ValueError, TypeError):
        why = "that is not a length of time"
        raise option_fault(call, option, text, why=why, instead=instead, at=at) from None
    return round(length / _MICROSECOND / 1000) * 1000
