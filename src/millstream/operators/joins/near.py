"""Rows of two streams that belong together if they are near each other in event time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F

from millstream.model.duration import to_text
from millstream.model.state import KeptOperator
from millstream.operators.build_context import Hold, complete_us, continues_without, notes
from millstream.operators.columns import free_name, quoted, typed
from millstream.operators.event_time import BEHIND, WATERMARK, behind_us

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location
    from millstream.operators.joins.sides import Sides

    How = Literal["inner", "left", "right", "full", "semi"]

CALL = "ms.join_within"
_MILLISECOND_US = 1000

_BOUNDS_A_BUCKET = 4
"""How many times the bound a bucket is: one copy in four rows of the side that is copied."""
_SHORTEST_BUCKET_US = 10**6


@dataclass(frozen=True, slots=True)
class TimeBound:
    """How much earlier and later than the left row a right row may be, in microseconds."""

    before_us: int
    after_us: int

    @property
    def waits_us(self) -> int:
        """How long after a row its answer may come: Spark drops the row a millisecond later."""
        return max(self.before_us, self.after_us) + _MILLISECOND_US

    @property
    def bucket_us(self) -> int:
        """How long a bucket of time is: rows of other buckets are not compared."""
        return max(_BOUNDS_A_BUCKET * (self.before_us + self.after_us), _SHORTEST_BUCKET_US)


def near_pairs(sides: Sides, bound: TimeBound, how: How, at: Location) -> DataFrame:
    """Join the rows of two sides that are near each other in time."""
    is_stream = sides.left.isStreaming
    is_earlier = is_stream and continues_without(CALL)
    marked = sides if is_stream else _marked(sides)
    meets = _meets(sides, bound, how)
    if how != "full" and not is_earlier:
        bucket = free_name("_bucket", (*marked.left.columns, *marked.right.columns))
        marked = _in_buckets(marked, bound, how, bucket)
        meets &= quoted(bucket, "l") == quoted(bucket, "r")
    left, right = marked.left.alias("l"), marked.right.alias("r")
    pairs = left.join(right, meets, "leftsemi" if how == "semi" else how)
    if is_stream:
        notes().holds.append(Hold(timedelta(microseconds=bound.waits_us)))
        notes().states.extend(() if is_earlier else (_kept(sides, bound, how, at),))
    elif how != "semi":
        pairs = _final(pairs, sides, bound)
    return pairs.select(*_columns(sides, bound, how))


def all_pairs(sides: Sides, at: Location) -> DataFrame:
    """Join all rows of equal keys, whenever they were; a stream keeps every row for ever."""
    if sides.left.isStreaming:
        facts = {"on": typed(sides.left, sides.on), "within": "any time"}
        notes().states.append(KeptOperator(CALL, facts, at=at))
    meets = (quoted(key, "l") == quoted(key, "r") for key in sides.on)
    pairs = sides.left.alias("l").join(
        sides.right.alias("r"), reduce(lambda one, other: one & other, meets)
    )
    return pairs.select(*sides.columns(is_outer=False))


def _meets(sides: Sides, bound: TimeBound, how: How) -> Column:
    """Return the condition of a pair."""
    one, other = quoted(sides.left_time, "l"), quoted(sides.right_time, "r")
    # In this form Spark finds out for how long it has to keep the rows of each side.
    begins = one - _interval(bound.before_us) if bound.before_us else one
    meets = (other >= begins) & (other <= one + _interval(bound.after_us))
    return reduce(lambda so_far, key: so_far & _equal(key, how), sides.on, meets)


def _in_buckets(sides: Sides, bound: TimeBound, how: How, bucket: str) -> Sides:
    """Give rows the bucket of their time, so that Spark compares rows of one bucket only.

    A row of one side is in one bucket. Of the other side, whose rows without a partner are not
    asked for, each bucket where a partner may be has a copy: a pair is found once, in the bucket of
    the row that is in one. A full join asks for both, and has no buckets.
    """
    width = bound.bucket_us

    def of(us: Column) -> Column:
        return us - F.pmod(us, F.lit(width))

    def between(first_us: Column, last_us: Column) -> Column:
        return F.explode(F.sequence(of(first_us), of(last_us), F.lit(width)))

    one, other = (F.unix_micros(quoted(name)) for name in (sides.left_time, sides.right_time))
    before, after = F.lit(bound.before_us), F.lit(bound.after_us)
    if how == "right":
        buckets = between(one - before, one + after), of(other)
    else:
        buckets = of(one), between(other - after, other + before)
    left, right = (
        sides.left.withColumn(bucket, buckets[0]),
        sides.right.withColumn(bucket, buckets[1]),
    )
    return replace(sides, left=left, right=right)


def _kept(sides: Sides, bound: TimeBound, how: How, at: Location) -> KeptOperator:
    """Describe what the state of a stream depends on; Spark itself compares the columns."""
    lengths = (timedelta(microseconds=us) for us in (bound.before_us, bound.after_us))
    facts = {
        "on": typed(sides.left, sides.on),
        "within": " and ".join(map(to_text, lengths)),
        "how": how,
        "the event times": f"{sides.left_time} and {sides.right_time}",
        "buckets": to_text(timedelta(microseconds=bound.bucket_us)),
    }
    return KeptOperator(CALL, facts, at=at)


def _marked(sides: Sides) -> Sides:
    """Mark the rows of both sides: after the join, a row without its mark is not there."""
    there = _there(sides)
    left, right = (side.withColumn(there, F.lit(True)) for side in (sides.left, sides.right))
    return replace(sides, left=left, right=right)


def _there(sides: Sides) -> str:
    """Return a name for the column that marks whether a side is present in a joined row."""
    return free_name("_there", (*sides.left.columns, *sides.right.columns))


def _equal(key: str, how: How) -> Column:
    """Return the condition that a key is equal on both sides; a null equals nothing."""
    one, other = quoted(key, "l"), quoted(key, "r")
    if how != "full":
        return one == other
    # For other joins Spark leaves null keys out; its full join of streams lets null equal null.
    # With a condition on one side alone it would emit such rows before they are final.
    return (one == other) & (one.isNotNull() | other.isNotNull())


def _interval(us: int) -> Column:
    return F.expr(f"INTERVAL '{us // 10**6}.{us % 10**6:06d}' SECOND")


def _final(pairs: DataFrame, sides: Sides, bound: TimeBound) -> DataFrame:
    """Leave out rows without a partner that a stream with this watermark still keeps."""
    frontier = complete_us() - _behind(sides)
    left, right = (quoted(_there(sides), side) for side in "lr")
    if math.isinf(frontier):
        return pairs if frontier > 0 else pairs.where(left & right)
    # Spark drops a row if it is older than the watermark less the bound, by a millisecond.
    closed = int(frontier) - _MILLISECOND_US
    one, other = quoted(sides.left_time, "l"), quoted(sides.right_time, "r")
    return pairs.where(
        (left & right)
        | (left & (F.unix_micros(one) <= closed - bound.after_us))
        | (right & (F.unix_micros(other) <= closed - bound.before_us))
    )


def _behind(sides: Sides) -> int:
    return max(behind_us(sides.left, sides.left_time), behind_us(sides.right, sides.right_time))


def _columns(sides: Sides, bound: TimeBound, how: How) -> list[Column]:
    """The columns of the answer; the event time of a side that is always there stays one."""
    columns = []
    for name in sides.left.columns:
        column = quoted(name, "l")
        if name in sides.on and how in ("right", "full"):
            column = F.coalesce(column, quoted(name, "r"))
        is_time = name == sides.left_time and how not in ("right", "full")
        metadata = _metadata(sides, name, "left", bound, is_time=is_time)
        columns.append(column.alias(name, metadata=metadata))
    for name, called in sides.names.items() if how != "semi" else ():
        is_time = name == sides.right_time and how == "right"
        metadata = _metadata(sides, name, "right", bound, is_time=is_time)
        columns.append(quoted(name, "r").alias(called, metadata=metadata))
    return columns


def _metadata(
    sides: Sides, name: str, side: Literal["left", "right"], bound: TimeBound, *, is_time: bool
) -> dict[str, object]:
    """Return the metadata of a column; Spark refuses two event times in one row."""
    rows = sides.left if side == "left" else sides.right
    metadata = dict(rows.schema[name].metadata or {})
    if not is_time:
        metadata.pop(WATERMARK, None)
        metadata.pop(BEHIND, None)
    elif not rows.isStreaming and not math.isinf(complete_us()):
        metadata[BEHIND] = _behind(sides) + bound.waits_us
        notes().behind_us.append(_behind(sides) + bound.waits_us)
    return metadata
