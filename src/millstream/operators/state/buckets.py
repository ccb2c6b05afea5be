"""Rows of many keys through one function of a key, with state: in a batch and in a stream.

Spark's Python state costs a round trip for each call: with one group per key, 1 to 5 thousand rows
a second were measured. So a group of Spark's is a bucket of keys here, and what it keeps is one map
entry for each part of the bucket, which holds the state of all keys in that part. A bucket begins
with one part, and has twice as many whenever one has become large: a batch then asks for few parts
if there are few keys, and for small ones if there are many.
"""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from millstream.operators.state.aside import Raised, put
from millstream.operators.state.frontier import frontier_us, of_watermark

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

    Row = tuple[Any, ...]
    Keys = dict[str, tuple[bytes, int | None]]

BUCKETS = 32
"""Fixed for ever: what a checkpoint holds is found by it."""
LARGEST = 1024
"""How many keys a part may hold: beyond that, to read it takes longer than to ask for it."""

EARLIER = "parts"
"""How names of state began that had a fixed number of parts for each bucket."""

KEY, _BUCKET = "key", "bucket"
"""Names that begin with an underscore do not reach Python: Spark goes through named tuples."""
_STATE = StructType().add("packed", "binary")
_PLACE = StructType().add("part", "integer")
KEYS = msgspec.msgpack.Decoder(dict[str, tuple[bytes, int | None]])
"""Reads a part of a bucket: what each key remembers, and when it is due."""


class Turn(NamedTuple):
    """What came of a key's turn."""

    packed: bytes | None
    """What is to be remembered; None if nothing."""
    due_us: int | None
    """The event time that the frontier must reach for the key to have a turn without rows."""
    answers: Sequence[Row]
    raised: Sequence[Raised] = ()
    """Rows to be put aside."""


class Keyed(Protocol):
    """What is done with the rows of one key; it must be possible to pickle it."""

    def turn(self, key: str, packed: bytes | None, rows: Sequence[Row], frontier_us: float) -> Turn:
        """Go on from what is remembered with rows that have arrived, in no special order.

        The frontier never goes back, and all rows up to it have arrived. Equal rows, frontiers
        and memories must give equal answers.
        """
        ...


@dataclass(frozen=True)
class Keeping:
    """How the state of keys is kept, and by which clock they are due."""

    name: str = "keys"
    """What Spark calls it in the checkpoint. Another layout needs another name: see `EARLIER`."""
    clock: Literal["EventTime", "ProcessingTime", "None"] = "EventTime"
    aside: str | None = None
    """The folder for rows to be put aside."""


_PLAIN = Keeping()


def run_keyed(
    rows: DataFrame,
    keyed: Keyed,
    answers: StructType,
    keeping: Keeping = _PLAIN,
    initial: DataFrame | None = None,
) -> DataFrame:
    """Give the answers to rows, whose first column is the text of their key.

    Args:
        rows: No column is ever null; in a stream they have a watermark, if it is the clock.
        keyed: What to do with the rows of a key.
        answers: The columns of an answer.
        keeping: How state is kept.
        initial: Rows of the same columns that come before all others.
    """
    if not rows.isStreaming:
        rows = rows if initial is None else rows.unionByName(initial)
        ordered = rows.repartition(KEY).sortWithinPartitions(KEY)
        run = _Whole(keyed, to_arrow_schema(answers), frontier_us(), keeping)
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
    return rows.select(F.pmod(F.xxhash64(KEY), F.lit(BUCKETS)).cast("int").alias(_BUCKET), "*")


@dataclass(frozen=True)
class _Whole:
    """All rows of a key at once: a batch."""

    keyed: Keyed
    answers: pa.Schema
    frontier_us: float
    keeping: Keeping

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key, waiting, raised = None, list[Any](), list[Raised]()
        for batch in batches:
            answers: list[Any] = []
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if row[0] != key:
                    answers += self._turn(key, waiting, raised)
                    key, waiting = row[0], []
                waiting.append(row[1:])
            yield from self._given(answers)
        yield from self._given(self._turn(key, waiting, raised))
        context = TaskContext.get()
        if raised and self.keeping.aside and context is not None:
            put(self.keeping.aside, f"{self.keeping.name}-{context.partitionId()}", raised)

    def _turn(self, key: str | None, rows: Sequence[Row], raised: list[Raised]) -> Sequence[Row]:
        if key is None:
            return ()
        turn = self.keyed.turn(key, None, rows, self.frontier_us)
        raised += turn.raised
        return turn.answers

    def _given(self, answers: Sequence[Row]) -> Iterator[pa.RecordBatch]:
        if answers:
            given = zip(zip(*answers, strict=True), self.answers.types, strict=True)
            columns = [pa.array(column, kind) for column, kind in given]
            yield pa.RecordBatch.from_arrays(columns, schema=self.answers)


class _Part:
    """The keys of one part of a bucket: what each remembers, and when it is due."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self.raised: list[Raised] = []

    def late(self, frontier: float) -> set[str]:
        """Name the keys that are due."""
        return {k for k, (_, due) in self.keys.items() if due is not None and due <= frontier}

    def take(
        self,
        keyed: Keyed,
        rows: Mapping[str, Sequence[Row]],
        late: Collection[str],
        frontier: float,
    ) -> list[Row]:
        """Give a turn to the keys that have rows, and to those that are due."""
        answers: list[Row] = []
        for key in sorted(rows.keys() | late):
            packed, _ = self.keys.pop(key, (None, None))
            turn = keyed.turn(key, packed, rows.get(key, ()), frontier)
            answers += turn.answers
            self.raised += turn.raised
            if turn.packed is not None:
                self.keys[key] = (turn.packed, turn.due_us)
        return answers

    @property
    def due_us(self) -> int | None:
        return min((due for _, due in self.keys.values() if due is not None), default=None)

    def pack(self) -> bytes | None:
        return msgspec.msgpack.encode(self.keys) if self.keys else None


class Buckets(StatefulProcessor):
    """Gives each key of a bucket its turns, in a stream."""

    def __init__(self, keyed: Keyed, names: Sequence[str], keeping: Keeping) -> None:
        self._keyed, self._names, self._keeping = keyed, names, keeping

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state of the bucket."""
        self._handle = handle
        self._parts = handle.getMapState(self._keeping.name, _PLACE, _STATE)
        self._dues = handle.getValueState("dues", _STATE)

    def handleInitialState(  # noqa: N802
        self,
        key: Any,
        initialState: pd.DataFrame,  # noqa: N803
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> None:
        """Take what keys begin with, before any row."""
        for _ in self._turns(key[0], _by_key([initialState]), -math.inf):
            pass

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Take the rows of a batch."""
        yield from self._turns(key[0], _by_key(rows), self._now(timerValues))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Give a turn to the keys that are due; Spark removes the timer itself."""
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

        found = self._dues.get()
        timer, count, dues = msgspec.msgpack.decode(found[0]) if found else (None, 1, {})
        parts = _by_part(rows, count)
        answers: list[Row] = []
        raised: list[Raised] = []
        largest = 0
        for number in sorted(parts.keys() | {p for p, due in dues.items() if due <= frontier}):
            held = self._parts.getValue((number,))
            part = _Part(KEYS.decode(held[0]) if held else {})
            late = part.late(frontier) if dues.get(number, math.inf) <= frontier else ()
            answers += part.take(self._keyed, parts.get(number, {}), late, frontier)
            raised += part.raised
            self._keep(number, part, dues, is_held=held is not None)
            largest = max(largest, len(part.keys))
        if largest > LARGEST:
            count = self._split(2 * count, dues)
        timer = self._wake_at(None if timer == fired else timer, dues)
        self._note(timer, count, dues, found)
        if raised and self._keeping.aside:
            put(self._keeping.aside, f"{self._keeping.name}-{bucket}-{fired}", raised)
        if answers:
            columns = zip(*answers, strict=True)
            # As they are: pandas would make a large number beside a null into one with fractions.
            yield pd.DataFrame(dict(zip(self._names, columns, strict=True)), dtype=object)

    def _keep(self, number: int, part: _Part, dues: dict[int, int], *, is_held: bool) -> None:
        packed, due = part.pack(), part.due_us
        if packed is not None:
            self._parts.updateValue((number,), (packed,))
        elif is_held:
            self._parts.removeKey((number,))
        dues.pop(number, None)
        if due is not None:
            dues[number] = due

    def _split(self, count: int, dues: dict[int, int]) -> int:
        """Keep the bucket in at least so many parts; give their number."""
        keys: Keys = {}
        for (number,), (packed,) in [*self._parts.iterator()]:
            keys |= KEYS.decode(packed)
            self._parts.removeKey((number,))
        dues.clear()
        while count * LARGEST < 2 * len(keys):
            count *= 2
        for number, part in _by_part(keys, count).items():
            self._keep(number, _Part(part), dues, is_held=False)
        return count

    def _wake_at(self, timer: int | None, dues: Mapping[int, int]) -> int | None:
        """Have Spark call when the first part is due; give the time."""
        due_us = min(dues.values(), default=None)
        wanted = None if due_us is None else -(-due_us // 1000)
        if wanted != timer:
            if timer is not None:
                self._handle.deleteTimer(timer)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        return wanted

    def _note(self, timer: int | None, count: int, dues: Mapping[int, int], found: Any) -> None:
        """Keep what is known of the bucket, if it is not what was found."""
        if timer is None and count == 1:
            if found:
                self._dues.clear()
            return
        noted = msgspec.msgpack.encode((timer, count, dues))
        if not found or noted != found[0]:
            self._dues.update((noted,))


def _by_key(frames: Iterable[pd.DataFrame]) -> dict[str, list[Row]]:
    """Put the rows of a key together."""
    keys: defaultdict[str, list[Row]] = defaultdict(list)
    for frame in frames:
        first = frame.columns.get_loc(KEY)
        texts, *columns = (frame[name].tolist() for name in frame.columns[first:])
        for text, row in zip(texts, zip(*columns, strict=True), strict=True):
            keys[text].append(row)
    return keys


def _by_part(keys: Mapping[str, Any], count: int) -> dict[int, dict[str, Any]]:
    """Sort keys by the part of the bucket that they belong to."""
    parts: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    for key, value in keys.items():
        parts[zlib.crc32(key.encode()) % count][key] = value
    return parts
