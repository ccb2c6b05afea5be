"""Rows of two streams that belong together if they are near each other in event time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from millstream.declare import location_of_caller
from millstream.errors import fault
from millstream.operators.event_time import length_us
from millstream.operators.fault import option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location
    from millstream.operators.joins.sides import Sides

    How = Literal["inner", "left", "right", "full", "semi"]

_CALL = "ms.join_within"
_HOWS = ("inner", "left", "right", "full", "semi")
_BEHIND = "millstream.behindUs"
"""How far the event time of a join's answer is behind the frontier: a further join waits longer."""

_MILLISECOND_US = 1000


@dataclass(frozen=True, slots=True)
class Bound:
    """How much earlier and later than the left row a right row may be, in microseconds."""

    before_us: int
    after_us: int

    @property
    def waits_us(self) -> int:
        """How long after a row its answer may come: Spark gives it up a millisecond later."""
        return max(self.before_us, self.after_us) + _MILLISECOND_US

    @staticmethod
    def of(within: str | tuple[str, str] | None, at: Location) -> Bound:
        """Read what the user says.

        Raises:
            OPERATOR_OPTION: It is not a length of time, or two of them.
        """
        before, after = ("0 s", within) if isinstance(within, str | None) else _two(within, at)
        why = "every row would be remembered for ever"
        lengths = (
            length_us(text, "within", call=_CALL, why=why, at=at) for text in (before, after)
        )
        return Bound(*lengths)


def _two(within: object, at: Location) -> tuple[str, str]:
    match within:
        case (str(before), str(after)):
            return before, after
    why, instead = (
        "neither a length of time nor two of them",
        'say within="1 hour", or within=("10 minutes", "1 hour") if the right row may come before',
    )
    raise option_fault(_CALL, "within", within, why=why, instead=instead, at=at)


def join_within(
    left: DataFrame,
    right: DataFrame,
    *,
    on: str | Sequence[str],
    within: str | tuple[str, str] | None = None,
    how: How = "inner",
    event_time: str | tuple[str, str] | None = None,
) -> DataFrame:
    """Join rows that have equal keys and are near each other in event time.

    `within="1 hour"` means 0 <= right time - left time <= 1 hour; `within=("10 minutes", "1 hour")`
    that the right row may also come up to 10 minutes before the left one. In a stream a pair is
    given as soon as both are there, a row without a partner when the watermark has passed the last
    moment for one. A column of the right side whose name the left side has too, such as the event
    time, is given as `at_right`.

    Args:
        left: In a stream, with a watermark.
        right: In a stream, with a watermark.
        on: Columns that are equal on both sides.
        within: The time bound.
        how: `inner`, `left`, `right`, `full`, or `semi`: left rows that have a partner, once.
        event_time: The column of both sides, or that of the left and that of the right; by default
            the only TIMESTAMP of each.

    Raises:
        DeclarationError: A key, an event time, a watermark or the time bound is missing.
    """
    at = location_of_caller()
    from millstream.operators.joins.sides import Sides

    bound = Bound.of(within, at)
    if how not in _HOWS:
        instead = f"use one of {', '.join(_HOWS)}"
        raise option_fault(_CALL, "how", how, why="not known", instead=instead, at=at)
    if left.isStreaming != right.isStreaming:
        side = "right" if left.isStreaming else "left"
        instead = "join it with Spark's own left.join(right, ...), or with ms.join_as_of"
        raise fault("JOIN_SIDES", at=at, side=side, call=_CALL, instead=instead)
    return _joined(Sides.of(left, right, on, event_time, call=_CALL, at=at), bound, how)


def _joined(sides: Sides, bound: Bound, how: How) -> DataFrame:
    from pyspark.sql import functions as F

    from millstream.operators.build_context import Hold, notes
    from millstream.operators.columns import quoted

    is_stream, there = sides.left.isStreaming, _there(sides)
    left, right = (
        side if is_stream else side.withColumn(there, F.lit(True))
        for side in (sides.left, sides.right)
    )
    one, other = quoted(sides.left_time, "l"), quoted(sides.right_time, "r")
    # In this form Spark finds out for how long it has to keep the rows of each side.
    begins = one - _interval(bound.before_us) if bound.before_us else one
    meets = (other >= begins) & (other <= one + _interval(bound.after_us))
    for key in sides.on:
        meets &= _equal(key, how)
    pairs = left.alias("l").join(right.alias("r"), meets, "leftsemi" if how == "semi" else how)
    if is_stream:
        notes().holds.append(Hold(timedelta(microseconds=bound.waits_us)))
    elif how != "semi":
        pairs = _final(pairs, sides, bound)
    return pairs.select(*_columns(sides, bound, how))


def _there(sides: Sides) -> str:
    """Name what tells whether a row of a side is in the answer's row."""
    from millstream.operators.columns import free_name

    return free_name("_there", (*sides.left.columns, *sides.right.columns))


def _equal(key: str, how: How) -> Column:
    """Say that a key is equal on both sides; a null equals nothing."""
    from millstream.operators.columns import quoted

    one, other = quoted(key, "l"), quoted(key, "r")
    if how != "full":
        return one == other
    # For other joins Spark leaves null keys out; its full join of streams takes null to equal null.
    # A condition on one side alone would have it give such rows before they are final.
    return (one == other) & (one.isNotNull() | other.isNotNull())


def _interval(us: int) -> Column:
    from pyspark.sql import functions as F

    return F.expr(f"INTERVAL '{us // 10**6}.{us % 10**6:06d}' SECOND")


def _final(pairs: DataFrame, sides: Sides, bound: Bound) -> DataFrame:
    """Leave out rows without a partner that a stream with this watermark still keeps."""
    from pyspark.sql import functions as F

    from millstream.operators.build_context import complete_us
    from millstream.operators.columns import quoted

    frontier = complete_us() - _behind(sides)
    left, right = (quoted(_there(sides), side) for side in "lr")
    if math.isinf(frontier):
        return pairs if frontier > 0 else pairs.where(left & right)
    # Spark gives a row up if it is older than the watermark less the bound, by a millisecond.
    closed = int(frontier) - _MILLISECOND_US
    one, other = quoted(sides.left_time, "l"), quoted(sides.right_time, "r")
    return pairs.where(
        (left & right)
        | (left & (F.unix_micros(one) <= closed - bound.after_us))
        | (right & (F.unix_micros(other) <= closed - bound.before_us))
    )


def _behind(sides: Sides) -> int:
    fields = (sides.left.schema[sides.left_time], sides.right.schema[sides.right_time])
    return max(int((field.metadata or {}).get(_BEHIND, 0)) for field in fields)


def _columns(sides: Sides, bound: Bound, how: How) -> list[Column]:
    """The columns of the answer; the event time of a side that is always there stays one."""
    from pyspark.sql import functions as F

    from millstream.operators.columns import quoted

    columns = []
    for name in sides.left.columns:
        column = quoted(name, "l")
        if name in sides.on and how in ("right", "full"):
            column = F.coalesce(column, quoted(name, "r"))
        is_time = name == sides.left_time and how not in ("right", "full")
        told = _told(sides, name, "left", bound, is_time=is_time)
        columns.append(column.alias(name, metadata=told))
    for name, called in sides.names.items() if how != "semi" else ():
        is_time = name == sides.right_time and how == "right"
        told = _told(sides, name, "right", bound, is_time=is_time)
        columns.append(quoted(name, "r").alias(called, metadata=told))
    return columns


def _told(
    sides: Sides, name: str, side: Literal["left", "right"], bound: Bound, *, is_time: bool
) -> dict[str, object]:
    """What Spark is told of a column: it takes two event times in one row for a fault."""
    from millstream.operators.build_context import complete_us, notes
    from millstream.operators.event_time import WATERMARK

    rows = sides.left if side == "left" else sides.right
    told = dict(rows.schema[name].metadata or {})
    if not is_time:
        told.pop(WATERMARK, None)
        told.pop(_BEHIND, None)
    elif not rows.isStreaming and not math.isinf(complete_us()):
        told[_BEHIND] = _behind(sides) + bound.waits_us
        notes().behind_us.append(_behind(sides) + bound.waits_us)
    return told
