"""Rows of two streams that belong together until a time that each left row has itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.model.duration import to_text
from millstream.model.state import KeptOperator
from millstream.operators.build_context import Hold, notes
from millstream.operators.columns import quoted, typed, types_of
from millstream.operators.joins.near import CALL
from millstream.operators.state.buckets import KEY, run_keyed
from millstream.operators.state.parts import TurnResult
from millstream.operators.state.row_text import as_key, as_text, check_kept_types, from_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location
    from millstream.operators.joins.near import How
    from millstream.operators.joins.sides import Sides

_LEFT, _RIGHT = "_left", "_right"
_ANSWERS = StructType([StructField(_LEFT, StringType()), StructField(_RIGHT, StringType())])
_UNTIMED = -(2**62)
"""The event time of a row that has none: before every other, and final at once."""


class _Waiting(msgspec.Struct, array_like=True):
    """A row that may still find a partner."""

    us: int
    until: int
    """The last moment for a partner; of a right row, its own time."""
    text: str
    is_matched: bool = False


class _UntilMemory(msgspec.Struct, array_like=True):
    """The rows of a key, in the order of event time."""

    left: list[_Waiting]
    right: list[_Waiting]


_MEMORIES = msgspec.msgpack.Decoder(_UntilMemory)


@dataclass(frozen=True)
class Until:
    """Joins each left row with the right rows from its own time until its end."""

    how: How

    def turn(
        self,
        key: str,  # noqa: ARG002
        packed: bytes | None,
        rows: Sequence[tuple[Any, ...]],
        frontier_us: float,
    ) -> TurnResult:
        """Take rows, event time, side, end and text; return pairs, and rows that stay alone.

        >>> until = Until("left")
        >>> rows = [(1, 0, 5, "l1"), (2, 0, 9, "l2"), (5, 1, 5, "r5")]
        >>> turn = until.turn("k", None, rows, 0)
        >>> turn.answers, turn.due_us
        ([('l1', 'r5'), ('l2', 'r5')], 5)
        >>> until.turn("k", turn.packed, [(3, 0, 4, "l3"), (9, 1, 9, "r9")], 9).answers
        [('l2', 'r9'), ('l3', '')]
        """
        memory = _MEMORIES.decode(packed) if packed is not None else _UntilMemory([], [])
        new = [_Waiting(us, until, text) for us, side, until, text in rows if side == 0]
        partners = [_Waiting(us, us, text) for us, side, _, text in rows if side == 1]
        known, left = memory.right, sorted([*memory.left, *new], key=_order)
        answers = [*self._pairs(left, partners), *self._pairs(new, known)]
        right = sorted([*known, *partners], key=_order)
        passed = max(frontier_us, _UNTIMED)
        answers += [(one.text, "") for one in left if self._is_alone(one, passed, "left")]
        answers += [("", one.text) for one in right if self._is_alone(one, passed, "right")]
        left, right = ([one for one in side if one.until > passed] for side in (left, right))
        if not left and not right:
            return TurnResult(None, None, answers)
        due = min(one.until for one in (*left, *right))
        return TurnResult(msgspec.msgpack.encode(_UntilMemory(left, right)), due, answers)

    def _pairs(
        self, left: Sequence[_Waiting], right: Sequence[_Waiting]
    ) -> Iterator[tuple[str, str]]:
        """Go through both in the order of event time, and pair each right row with what is open."""
        beginning = iter(sorted(left, key=_order))
        coming, opened = next(beginning, None), list[_Waiting]()
        for other in sorted(right, key=_order):
            while coming is not None and coming.us <= other.us:
                opened.append(coming)
                coming = next(beginning, None)
            opened = [one for one in opened if one.until >= other.us]
            for one in opened:
                if self.how != "semi" or not one.is_matched:
                    yield one.text, other.text
                one.is_matched = other.is_matched = True

    def _is_alone(self, one: _Waiting, passed: float, side: str) -> bool:
        return one.until <= passed and not one.is_matched and self.how in (side, "full")


def _order(one: _Waiting) -> tuple[int, str]:
    return one.us, one.text


def joined_until(
    sides: Sides, until: str, longest_us: int | None, how: How, at: Location
) -> DataFrame:
    """Join left rows with right rows from their time until their end.

    Raises:
        OPERATOR_COLUMN: A column has a type that the state of a stream cannot keep.
    """
    left, right = sides.left, sides.right
    check_kept_types(left, left.columns, call=CALL, at=at)
    check_kept_types(right, right.columns, call=CALL, at=at)
    ends = _ends(sides, until, longest_us)
    both = _keyed_rows(left, sides.on, sides.left_time, 0, ends).unionAll(
        _keyed_rows(right, sides.on, sides.right_time, 1, F.lit(_UNTIMED))
    )
    longest = None if longest_us is None else timedelta(microseconds=longest_us)
    if left.isStreaming:
        facts = {
            "on": typed(left, sides.on),
            "within": "any time" if longest is None else to_text(longest),
            "until": until,
            "how": how,
            "the event times": f"{sides.left_time} and {sides.right_time}",
        }
        columns = types_of(left, "the left rows") | types_of(right, "the right rows")
        notes().states.append(KeptOperator(CALL, facts, columns, at))
        if longest is not None:
            notes().holds.append(Hold(longest))
    pairs = run_keyed(both, Until(how), _ANSWERS).select(
        from_text(_LEFT, left, left.columns).alias("l"),
        from_text(_RIGHT, right, right.columns).alias("r"),
    )
    is_outer = how in ("right", "full")
    return pairs.select(*sides.columns(is_outer=is_outer, with_right=how != "semi"))


def _ends(sides: Sides, until: str, longest_us: int | None) -> Column:
    """Return the last moment for a partner of a left row: before its time, if it can have none."""
    at, end = (F.unix_micros(quoted(name)) for name in (sides.left_time, until))
    last = end if longest_us is None else F.least(end, at + longest_us)
    there = (quoted(k).isNotNull() for k in (*sides.on, until))
    can_meet = reduce(lambda one, other: one & other, there, end >= at)
    return F.when(can_meet, last).otherwise(at - 1)


def _keyed_rows(
    rows: DataFrame, on: Sequence[str], time: str, side: int, until: Column
) -> DataFrame:
    return rows.select(
        as_key(rows, on).alias(KEY),
        F.coalesce(F.unix_micros(quoted(time)), F.lit(_UNTIMED)).alias("us"),
        F.lit(side).alias("side"),
        F.coalesce(until, F.lit(_UNTIMED - 1)).alias("until"),
        as_text(rows.columns).alias("row"),
    )
