"""Rows of many keys through one function of a key, with state: in a batch and in a stream.

Spark's Python state costs a round trip for each call: with one group per key, 1 to 5 thousand rows
a second were measured. So a group of Spark's is a bucket of keys here, and its state is one map
entry for each part of the bucket, which holds the state of all keys in that part. A bucket has
twice as many parts whenever one has become large: a batch then reads few parts if there are few
keys, and small ones if there are many.

One more entry, the head, holds recent changes. A batch of few rows writes nothing else;
when the changes have become many, they are written into their parts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from millstream.operators.build_context import complete_us, of_watermark
from millstream.operators.state.parts import HEAD, HEAD_AT, KEYS, BucketPart, Head, Keys, part_of
from millstream.operators.state.prefetch import Prefetch
from millstream.operators.state.raised_rows import RaisedRow, write_raised_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

    from millstream.operators.state.parts import Keyed, Row

_BUCKETS: tuple[int, ...] = (
    *(0, 1, 2, 4, 5, 6, 7, 10, 12, 13, 15, 16, 17, 20, 21, 25),
    *(28, 30, 32, 33, 35, 37, 44, 49, 64, 65, 67, 69, 73, 75, 98, 148),
)
"""Numbers that Spark spreads evenly over 2, 4, 8, 16 or 32 tasks. Fixed for ever: what a checkpoint
holds is found by them."""
LARGEST = 2**13
"""How many bytes a part may have: beyond that, reading it takes longer than the round trip."""
RECENT = 2**16
"""How many bytes a head may have: beyond that, writing it takes longer than writing parts."""
MOST = 1024
"""How many parts a bucket may have: the head lists each."""

EARLIER = "dues"
"""The name of a state variable that only earlier layouts have."""

KEY, _BUCKET = "key", "bucket"
"""Names that begin with an underscore do not reach Python: Spark goes through named tuples."""
_STATE = StructType().add("packed", "binary")
_PLACE = StructType().add("part", "integer")


@dataclass(frozen=True)
class Keeping:
    """How the state of keys is kept, and by which clock they are due."""

    name: str = "kept"
    """What Spark calls it in the checkpoint. Another layout needs another name: see `EARLIER`."""
    clock: Literal["EventTime", "ProcessingTime", "None"] = "EventTime"
    aside: str | None = None
    """The folder for rows that the function raises on."""


_PLAIN = Keeping()


def run_keyed(
    rows: DataFrame,
    keyed: Keyed,
    answers: StructType,
    keeping: Keeping = _PLAIN,
    initial: DataFrame | None = None,
    *,
    behind_us: int = 0,
) -> DataFrame:
    """Return the answers to rows, whose first column is the text of their key.

    Args:
        rows: No column is ever null; in a stream they have a watermark, if it is the clock.
        keyed: What to do with the rows of a key.
        answers: The columns of an answer.
        keeping: How state is kept.
        initial: Rows of the same columns that come before all others.
        behind_us: How far the rows of a batch are behind its frontier.
    """
    from millstream.spark.session import share_python

    share_python(rows.sparkSession)
    if not rows.isStreaming:
        rows = rows if initial is None else rows.unionByName(initial)
        ordered = rows.repartition(KEY).sortWithinPartitions(KEY)
        run = _Whole(keyed, to_arrow_schema(answers), complete_us() - behind_us, keeping)
        return ordered.mapInArrow(run, answers)
    return (
        _bucketed(rows)
        .groupBy(_BUCKET)
        .transformWithStateInPandas(
            Buckets(keyed, answers.names, keeping),
            answers,
            outputMode="Append",
            timeMode=keeping.clock,
            initialState=_bucketed(initial).groupBy(_BUCKET) if initial is not None else None,
        )
    )


def _bucketed(rows: DataFrame) -> DataFrame:
    place = F.pmod(F.xxhash64(KEY), F.lit(len(_BUCKETS))).cast("int")
    numbers = F.array(*(F.lit(number) for number in _BUCKETS))
    return rows.select(F.get(numbers, place).alias(_BUCKET), "*")


@dataclass(frozen=True)
class _Whole:
    """All rows of a key at once: a batch."""

    keyed: Keyed
    answers: pa.Schema
    frontier_us: float
    keeping: Keeping

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key, waiting, raised = None, list[Any](), list[RaisedRow]()
        for batch in batches:
            answers: list[Any] = []
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if row[0] != key:
                    answers += self._turn(key, waiting, raised)
                    key, waiting = row[0], []
                waiting.append(row[1:])
            yield from self._batches(answers)
        yield from self._batches(self._turn(key, waiting, raised))
        context = TaskContext.get()
        if raised and self.keeping.aside and context is not None:
            write_raised_rows(
                self.keeping.aside, f"{self.keeping.name}-{context.partitionId()}", raised
            )

    def _turn(self, key: str | None, rows: Sequence[Row], raised: list[RaisedRow]) -> Sequence[Row]:
        if key is None:
            return ()
        turn = self.keyed.turn(key, None, rows, self.frontier_us)
        raised += turn.raised
        return turn.answers

    def _batches(self, answers: Sequence[Row]) -> Iterator[pa.RecordBatch]:
        if answers:
            typed = zip(zip(*answers, strict=True), self.answers.types, strict=True)
            columns = [pa.array(column, kind) for column, kind in typed]
            yield pa.RecordBatch.from_arrays(columns, schema=self.answers)


class Buckets(StatefulProcessor):
    """Runs the turns of each key of a bucket, in a stream."""

    def __init__(self, keyed: Keyed, names: Sequence[str], keeping: Keeping) -> None:
        self._keyed, self._names, self._keeping = keyed, names, keeping
        self._recent, self._largest = RECENT, LARGEST

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state of the bucket."""
        self._handle = handle
        self._entries = handle.getMapState(self._keeping.name, _PLACE, _STATE)
        self._prefetch = Prefetch(self._entries)

    def handleInitialState(  # noqa: N802
        self,
        key: Any,
        initialState: pd.DataFrame,  # noqa: N803
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> None:
        """Set the initial state of keys, before any row."""
        for _ in self._turns(key[0], _by_key([initialState]), -math.inf):
            pass

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Process the rows of a batch."""
        yield from self._turns(key[0], _by_key(rows), self._now(timerValues))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Run the keys that are due; Spark removes the timer itself."""
        fired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._turns(key[0], {}, self._now(timerValues), fired=fired)

    def _now(self, values: TimerValues) -> float:
        match self._keeping.clock:
            case "EventTime":
                return of_watermark(values.getCurrentWatermarkInMs())
            case "ProcessingTime":
                return values.getCurrentProcessingTimeInMs() * 1000
            case _:
                return -math.inf

    def _turns(
        self,
        bucket: int,
        rows: Mapping[str, Sequence[Row]],
        frontier: float,
        fired: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        found = self._entries.getValue((HEAD_AT,))
        head = HEAD.decode(found[0]) if found else Head()
        size = sum(map(len, rows)) + (len(found[0]) if found else 0)
        answers, raised = self._run_turns(head, size, rows, frontier)
        timer = None if head.timer == fired else head.timer
        head.timer = self._wake_at(timer, head.dues)
        self._store_head(head, found)
        if raised and self._keeping.aside:
            write_raised_rows(self._keeping.aside, f"{self._keeping.name}-{bucket}-{fired}", raised)
        if answers:
            columns = zip(*answers, strict=True)
            # As objects: pandas would turn large integers beside a null into floats.
            yield pd.DataFrame(dict(zip(self._names, columns, strict=True)), dtype=object)

    def _run_turns(
        self, head: Head, size: int, rows: Mapping[str, Sequence[Row]], frontier: float
    ) -> tuple[list[Row], list[RaisedRow]]:
        """Run the turns of keys; store the results in the head, or in parts if they are large."""
        answers: list[Row] = []
        raised: list[RaisedRow] = []
        of_parts = _by_part(rows, head.count)
        late = {number for number, due in head.dues.items() if due <= frontier}
        is_large, largest = size > self._recent, 0
        wanted = sorted(of_parts.keys() | late | (head.recent.keys() if is_large else set()))
        unread = [n for n in wanted if is_large or n in late or not head.has_new(n, of_parts[n])]
        self._expect(head, unread)
        for number in wanted:
            part = self._part(head, number)
            overdue = [k for k, due in part.dues() if due <= frontier] if number in late else ()
            answers += part.take(self._keyed, of_parts.get(number, {}), overdue, frontier)
            raised += part.raised
            size += part.grown
            if size > self._recent:
                largest = max(largest, self._store_part(head, number, part.merged()))
            else:
                self._store_in_head(head, number, part, is_known=number in late)
        if size > self._recent or head.is_forgetting:
            self._expect(head, rest := sorted(head.recent))
            for number in rest:
                kept = self._store_part(head, number, self._part(head, number).merged())
                largest = max(largest, kept)
        if largest > self._largest and head.count < MOST:
            self._split(head)
        return answers, raised

    def _part(self, head: Head, number: int) -> BucketPart:
        changed = head.recent.pop(number, None) or Keys()
        return BucketPart(changed, partial(self._load, number) if number in head.stored else None)

    def _expect(self, head: Head, parts: Iterable[int]) -> None:
        """Prepare to read parts: all there are if most are wanted, and none need be large."""
        stored = [number for number in parts if number in head.stored]
        is_most = 2 * len(stored) > len(head.stored) > 1
        self._prefetch.expect(stored, at_once=is_most and head.count < MOST)

    def _load(self, number: int) -> Keys:
        return KEYS.decode(self._prefetch.read(number))

    def _store_in_head(self, head: Head, number: int, part: BucketPart, *, is_known: bool) -> None:
        """Store the changes of a part in the head, and the first moment that may be due."""
        if len(part.changed):
            head.recent[number] = part.changed
        dues = [due for _, due in part.dues()] if is_known else [*part.changed.dues.values()]
        if not is_known and number in head.dues:
            dues.append(head.dues[number])
        _set_due(head, number, dues)

    def _store_part(self, head: Head, number: int, keys: Keys) -> int:
        """Store a part; return its size in bytes, or 0 if it has one key and cannot be split."""
        packed = b""
        if len(keys):
            packed = msgspec.msgpack.encode(keys)
            self._entries.updateValue((number,), (packed,))
            head.stored.add(number)
        elif number in head.stored:
            self._entries.removeKey((number,))
            head.stored.remove(number)
        _set_due(head, number, keys.dues.values())
        return len(packed) if len(keys) > 1 else 0

    def _split(self, head: Head) -> None:
        """Split a bucket into at least twice as many parts."""
        keys, parts = Keys(), sorted(head.stored)
        self._expect(head, parts)
        for number in parts:
            keys.change(self._load(number))
            self._store_part(head, number, Keys())
        size = len(msgspec.msgpack.encode(keys))
        head.count *= 2
        while head.count < MOST and head.count * self._largest < 2 * size:
            head.count *= 2
        for number, part in keys.in_parts(head.count).items():
            self._store_part(head, number, part)

    def _wake_at(self, timer: int | None, dues: Mapping[int, int]) -> int | None:
        """Set Spark's timer to when the first part is due; return that time."""
        due_us = min(dues.values(), default=None)
        wanted = None if due_us is None else -(-due_us // 1000)
        if wanted != timer:
            if timer is not None:
                self._handle.deleteTimer(timer)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        return wanted

    def _store_head(self, head: Head, found: Any) -> None:
        """Store the head, if it has changed."""
        if head.is_empty:
            if found:
                self._entries.removeKey((HEAD_AT,))
            return
        packed = msgspec.msgpack.encode(head)
        if not found or packed != found[0]:
            self._entries.updateValue((HEAD_AT,), (packed,))


def _set_due(head: Head, number: int, dues: Collection[int]) -> None:
    """Record when a part is due."""
    if dues:
        head.dues[number] = min(dues)
    else:
        head.dues.pop(number, None)


def _by_key(frames: Iterable[pd.DataFrame]) -> dict[str, list[Row]]:
    """Group rows by key."""
    keys: defaultdict[str, list[Row]] = defaultdict(list)
    for frame in frames:
        first = frame.columns.get_loc(KEY)
        texts, *columns = (frame[name].tolist() for name in frame.columns[first:])
        for text, row in zip(texts, zip(*columns, strict=True), strict=True):
            keys[text].append(row)
    return keys


def _by_part(rows: Mapping[str, Sequence[Row]], count: int) -> dict[int, dict[str, Sequence[Row]]]:
    """Group keys by the part of the bucket that they belong to."""
    parts: defaultdict[int, dict[str, Sequence[Row]]] = defaultdict(dict)
    for key, arrived in rows.items():
        parts[part_of(key, count)][key] = arrived
    return parts
