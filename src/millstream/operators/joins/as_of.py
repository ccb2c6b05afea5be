"""What users call to join each event with the latest row as of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from millstream.declare.function import location_of_caller
from millstream.errors import fault
from millstream.operators.event_time import length_us
from millstream.operators.fault import option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

_CALL = "ms.join_as_of"
_HOWS = ("left", "inner")


def join_as_of(
    events: DataFrame,
    reference: DataFrame,
    *,
    on: str | Sequence[str],
    within: str | None = None,
    how: Literal["left", "inner"] = "left",
    event_time: str | tuple[str, str] | None = None,
) -> DataFrame:
    """Join each event with the latest reference row of its key at or before its event time.

    Of reference rows at the same instant the greatest counts, by their columns written as JSON. If
    both are streams, an event is emitted when the watermark has passed it: a reference row that
    arrives later and belongs before it is found, and one that belongs after it is not.
    A stream keeps one reference row per key, besides those that are newer than the watermark; with
    `within`, only keys that had one in that time. If only the events are a stream, each batch is
    joined at once with the reference rows as they are. An event whose event time is null has no
    reference row, and does not wait.

    Args:
        events: In a stream with a stream, with a watermark.
        reference: Rows that hold from their event time on, until the next of their key.
        on: Columns that are equal on both sides.
        within: How old a reference row may be; by default any age.
        how: `left` keeps events that have no reference row, `inner` does not.
        event_time: The column of both sides, or that of the events and that of the reference; by
            default the only TIMESTAMP of each.

    Raises:
        DeclarationError: A key, an event time or a watermark is missing, or does not fit.
    """
    at = location_of_caller()
    from millstream.operators.joins.latest import AsOf
    from millstream.operators.joins.sides import Sides
    from millstream.operators.reference import is_from_outside

    age_us = None if within is None else length_us(within, "within", call=_CALL, why="", at=at)
    if how not in _HOWS:
        instead = f"use one of {', '.join(_HOWS)}"
        raise option_fault(_CALL, "how", how, why="not known", instead=instead, at=at)
    if reference.isStreaming and not events.isStreaming:
        instead = "read the reference rows as a batch as well"
        raise fault("JOIN_SIDES", at=at, side="left", call=_CALL, instead=instead)
    sides = Sides.of(events, reference, on, event_time, call=_CALL, at=at)
    as_of = AsOf(sides, age_us, is_inner=how == "inner")
    is_stream = events.isStreaming
    if not reference.isStreaming and (is_stream or is_from_outside(reference)):
        return as_of.at_once()
    return as_of.in_order(_CALL, at)
