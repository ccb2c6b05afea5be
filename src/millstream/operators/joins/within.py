"""What users call to join rows of two streams that are near each other in event time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.declare.function import location_of_caller
from millstream.errors import fault
from millstream.operators.event_time import length_us
from millstream.operators.fault import column_fault, option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from millstream.errors import Location
    from millstream.operators.joins.near import How, TimeBound

_CALL = "ms.join_within"
_HOWS = ("inner", "left", "right", "full", "semi")


def _bound(within: str | tuple[str, str] | None, at: Location) -> TimeBound:
    """Read the option of the user.

    Raises:
        OPERATOR_OPTION: It is not a length of time, or two of them.
    """
    from millstream.operators.joins.near import TimeBound

    before, after = ("0 s", within) if isinstance(within, str | None) else _two(within, at)
    why = "every row would be remembered for ever, which unbounded=True asks for"
    lengths = (length_us(text, "within", call=_CALL, why=why, at=at) for text in (before, after))
    return TimeBound(*lengths)


def _two(within: object, at: Location) -> tuple[str, str]:
    match within:
        case (str(before), str(after)):
            return before, after
    why, instead = (
        "neither a length of time nor two of them",
        'say within="1 hour", or within=("10 minutes", "1 hour") if the right row may come before',
    )
    raise option_fault(_CALL, "within", within, why=why, instead=instead, at=at)


def join_within(  # noqa: PLR0913 - each is said by name, and most calls say two
    left: DataFrame,
    right: DataFrame,
    *,
    on: str | Sequence[str],
    within: str | tuple[str, str] | None = None,
    until: str | None = None,
    unbounded: bool = False,
    how: How = "inner",
    event_time: str | tuple[str, str] | None = None,
) -> DataFrame:
    """Join rows that have equal keys and are near each other in event time.

    `within="1 hour"` means 0 <= right time - left time <= 1 hour; `within=("10 minutes", "1 hour")`
    that the right row may also come up to 10 minutes before the left one. `until="expires"` means
    left time <= right time <= expires, a column of the left row; with `within` too, the earlier of
    both ends. In a stream a pair is emitted as soon as both are there, and a row without a partner
    when the watermark has passed the last moment for one. A column of the right side whose name the
    left side has too, such as the event time, is named `at_right`.

    Args:
        left: In a stream, with a watermark.
        right: In a stream, with a watermark.
        on: Columns that are equal on both sides.
        within: The time bound.
        until: A TIMESTAMP of the left side: until when a row may find a partner, itself included. A
            row that has none, or one before its own time, finds none.
        unbounded: Join all rows of equal keys, whenever they were. A stream keeps every row for
            ever.
        how: `inner`, `left`, `right`, `full`, or `semi`: left rows that have a partner, once.
        event_time: The column of both sides, or that of the left and that of the right; by default
            the only TIMESTAMP of each; with `until`, the only other one.

    Raises:
        DeclarationError: A key, an event time, a watermark or the time bound is missing.
    """
    at = location_of_caller()
    from millstream.operators.joins.near import all_pairs, near_pairs
    from millstream.operators.joins.sides import Sides
    from millstream.operators.joins.until import joined_until

    if how not in _HOWS:
        instead = f"use one of {', '.join(_HOWS)}"
        raise option_fault(_CALL, "how", how, why="not known", instead=instead, at=at)
    if left.isStreaming != right.isStreaming:
        side = "right" if left.isStreaming else "left"
        instead = "join it with Spark's own left.join(right, ...), or with ms.join_as_of"
        raise fault("JOIN_SIDES", at=at, side=side, call=_CALL, instead=instead)
    if unbounded:
        _check_unbounded(within, until, how, at)
        return all_pairs(Sides.untimed(left, right, on, call=_CALL, at=at), at)
    if until is None:
        bound = _bound(within, at)
        sides = Sides.of(left, right, on, event_time, call=_CALL, at=at)
        return near_pairs(sides, bound, how, at)
    longest_us = _longest(within, at)
    times = _times(left, until, event_time, at)
    sides = Sides.of(left, right, on, times, call=_CALL, at=at)
    return joined_until(sides, until, longest_us, how, at)


def _check_unbounded(within: object, until: object, how: str, at: Location) -> None:
    if within is not None or until is not None:
        option, got = ("within", within) if within is not None else ("until", until)
        why, instead = "unbounded=True as well", "leave one of the two out"
        raise option_fault(_CALL, option, got, why=why, instead=instead, at=at)
    if how != "inner":
        why = "without a bound, a row without a partner is never final"
        instead = 'use how="inner", or say within="1 hour"'
        raise option_fault(_CALL, "how", how, why=why, instead=instead, at=at)


def _longest(within: object, at: Location) -> int | None:
    """Read the bound that ends what `until` does not."""
    match within:
        case None:
            return None
        case str():
            return length_us(within, "within", call=_CALL, why="", at=at)
    why, instead = "not one length of time", 'with until, say within="1 hour" or leave it out'
    raise option_fault(_CALL, "within", within, why=why, instead=instead, at=at)


def _times(
    left: DataFrame, until: str, event_time: str | tuple[str, str] | None, at: Location
) -> str | tuple[str | None, str | None] | None:
    """Return the event times: by default of the left side the only TIMESTAMP besides `until`."""
    from pyspark.sql.types import TimestampType

    times = [f.name for f in left.schema.fields if isinstance(f.dataType, TimestampType)]
    if until not in times:
        why = "which is not a TIMESTAMP of the left rows"
        raise column_fault(_CALL, until, option="until", why=why, columns=left.columns, at=at)
    others = [name for name in times if name != until]
    return (others[0], None) if event_time is None and len(others) == 1 else event_time
