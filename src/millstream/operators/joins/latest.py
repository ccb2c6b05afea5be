"""The latest row of a key as of a moment: kept in the state of a stream, or looked up at once."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.errors import MillstreamError, fault
from millstream.model.duration import to_text
from millstream.model.state import KeptOperator
from millstream.operators.build_context import Hold, notes
from millstream.operators.columns import quoted, typed, types_of
from millstream.operators.state.buckets import KEY, run_keyed
from millstream.operators.state.parts import TurnResult
from millstream.operators.state.row_text import as_key, as_text, check_kept_types, from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location
    from millstream.operators.joins.sides import Sides

_EVENT, _REFERENCE, _HISTORY = "_event", "_reference", "_history"
_ANSWERS = StructType(
    [StructField(_EVENT, StringType()), StructField(_REFERENCE, StringType())],
)
_UNTIMED = -(2**62)
"""The event time of an event that has none: before every reference row, and final at once."""


class _LatestMemory(msgspec.Struct, array_like=True):
    """What is known of a key: events that are not final, and reference rows for later events."""

    events: list[tuple[int, str]]
    reference: list[tuple[int, str]]


_MEMORIES = msgspec.msgpack.Decoder(_LatestMemory)


@dataclass(frozen=True)
class Latest:
    """Gives each event the latest reference row as of its time, in order of event time."""

    age_us: int | None
    is_inner: bool

    def turn(
        self,
        key: str,  # noqa: ARG002
        packed: bytes | None,
        rows: Sequence[tuple[Any, ...]],
        frontier_us: float,
    ) -> TurnResult:
        """Take rows, event time, side and text, and answer the events up to the frontier.

        >>> latest = Latest(None, is_inner=False)
        >>> rows = [(5, 1, "r5"), (9, 1, "r9"), (1, 0, "e1"), (7, 0, "e7"), (9, 0, "e9")]
        >>> turn = latest.turn("k", None, rows, 8)
        >>> turn.answers, turn.due_us
        ([('e1', ''), ('e7', 'r5')], 9)
        >>> latest.turn("k", turn.packed, [(8, 1, "r8"), (10, 0, "e10")], 10).answers
        [('e9', 'r9'), ('e10', 'r9')]
        """
        memory = _MEMORIES.decode(packed) if packed is not None else _LatestMemory([], [])
        events = sorted([*memory.events, *((us, text) for us, is_ref, text in rows if not is_ref)])
        known = sorted([*memory.reference, *((us, text) for us, is_ref, text in rows if is_ref)])
        final = bisect_right(events, max(frontier_us, _UNTIMED), key=_time)
        answers = [
            (text, found)
            for us, text in events[:final]
            if (found := self._as_of(known, us)) or not self.is_inner
        ]
        events, known = events[final:], self._needed(known, frontier_us)
        if not events and not known:
            return TurnResult(None, None, answers)
        dues = [us for us, _ in events[:1]]
        if self.age_us is not None:
            dues += [us + self.age_us for us, _ in known[:1]]
        packed = msgspec.msgpack.encode(_LatestMemory(events, known))
        return TurnResult(packed, min(dues, default=None), answers)

    def _as_of(self, known: Sequence[tuple[int, str]], us: int) -> str:
        place = bisect_right(known, us, key=_time)
        if place == 0 or (self.age_us is not None and us - known[place - 1][0] > self.age_us):
            return ""
        return known[place - 1][1]

    def _needed(self, known: list[tuple[int, str]], frontier_us: float) -> list[tuple[int, str]]:
        """Leave out what counts for no event after the frontier."""
        place = max(bisect_right(known, frontier_us, key=_time) - 1, 0)
        if self.age_us is not None:
            place = max(place, bisect_right(known, frontier_us - self.age_us, key=_time))
        return known[place:]


def _time(row: tuple[int, str]) -> int:
    return row[0]


@dataclass(frozen=True, slots=True)
class AsOf:
    """Events and reference rows that are joined."""

    sides: Sides
    age_us: int | None
    is_inner: bool

    def in_order(self, call: str, at: Location) -> DataFrame:
        """Join in order of event time, whatever order rows arrive in.

        Raises:
            OPERATOR_COLUMN: A column has a type that the state of a stream cannot keep.
        """
        left, right = self.sides.left, self.sides.right
        check_kept_types(left, left.columns, call=call, at=at)
        check_kept_types(right, right.columns, call=call, at=at)
        both = _keyed_rows(left, self.sides.on, self.sides.left_time, side=0).unionAll(
            _keyed_rows(self._keyed, self.sides.on, self.sides.right_time, side=1)
        )
        if left.isStreaming:
            notes().states.append(self._kept(call, at))
        joined = run_keyed(both, Latest(self.age_us, self.is_inner), _ANSWERS)
        notes().holds.append(Hold(timedelta()))
        if left.isStreaming and self.age_us is None:
            notes().forever.append(partial(_unbounded, call=call, at=at))
        return joined.select(
            from_text(_EVENT, left, left.columns).alias("l"), self._reference().alias("r")
        ).select("l.*", *self._added())

    def _kept(self, call: str, at: Location) -> KeptOperator:
        """Describe what the state of a key depends on."""
        sides = self.sides
        age = None if self.age_us is None else timedelta(microseconds=self.age_us)
        facts = {
            "on": typed(sides.left, sides.on),
            "within": "any age" if age is None else to_text(age),
            "the event times": f"{sides.left_time} and {sides.right_time}",
        }
        columns = types_of(sides.left, "the left rows") | types_of(sides.right, "the right rows")
        return KeptOperator(call, facts, columns, at)

    def at_once(self) -> DataFrame:
        """Join with reference rows that are complete."""
        left, on = self.sides.left.alias("l"), self.sides.on
        rows = self._keyed
        dated = F.struct(
            F.unix_micros(quoted(self.sides.right_time)).alias("us"),
            as_text(rows.columns).alias("text"),
        )
        history = rows.groupBy(*map(quoted, on)).agg(
            F.sort_array(F.collect_list(dated)).alias(_HISTORY)
        )
        meets = reduce(
            lambda one, other: one & other, (quoted(k, "l") == quoted(k, "h") for k in on)
        )
        us = F.unix_micros(quoted(self.sides.left_time, "l"))
        earlier = F.filter(_HISTORY, lambda row: row["us"] <= us)
        if self.age_us is not None:
            youngest = us - self.age_us
            earlier = F.filter(earlier, lambda row: row["us"] >= youngest)
        found = F.try_element_at(earlier, F.lit(-1))["text"]
        events = [quoted(name, "l") for name in self.sides.left.columns]
        joined = left.join(history.alias("h"), meets, "left").select(
            *events, F.coalesce(found, F.lit("")).alias(_REFERENCE)
        )
        if self.is_inner:
            joined = joined.where(F.col(_REFERENCE) != "")
        rows_and_found = joined.withColumn("r", self._reference())
        return rows_and_found.select(*map(quoted, self.sides.left.columns), *self._added())

    @property
    def _keyed(self) -> DataFrame:
        """The reference rows that an event can be equal to: a null equals nothing."""
        there = (quoted(k).isNotNull() for k in (*self.sides.on, self.sides.right_time))
        return self.sides.right.where(reduce(lambda one, other: one & other, there))

    def _reference(self) -> Column:
        return from_text(_REFERENCE, self.sides.right, self.sides.right.columns)

    def _added(self) -> list[Column]:
        return [quoted(n, "r").alias(called, metadata={}) for n, called in self.sides.names.items()]


def _unbounded(dataset: str, *, call: str, at: Location) -> MillstreamError:
    why = "a row of every key is kept for ever, as it may count for an event of any later time"
    fix = 'say how old a row may be: within="1 day"; or let it be, if keys are few'
    return fault("UNBOUNDED_STATE", at=at, operator=call, dataset=dataset, why=why, fix=fix)


def _keyed_rows(rows: DataFrame, on: Sequence[str], time: str, *, side: int) -> DataFrame:
    return rows.select(
        as_key(rows, on).alias(KEY),
        F.coalesce(F.unix_micros(quoted(time)), F.lit(_UNTIMED)).alias("us"),
        F.lit(side).alias("side"),
        as_text(rows.columns).alias("row"),
    )
