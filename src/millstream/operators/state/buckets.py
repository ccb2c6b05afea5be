"""Rows of many keys through one function of a key, with state: in a batch and in a stream.

Spark's Python state costs a round trip for each call: with one group per key, 1 to 5 thousand rows
a second were measured. So a group of Spark's is a bucket of keys here, and what it keeps is one map
entry for each part of the bucket, which holds the state of all keys in that part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from millstream.operators.state.frontier import frontier_us, of_watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

    Row = tuple[Any, ...]

BUCKETS, PARTS = 32, 32
"""Fixed for ever: what a checkpoint holds is found by them."""

KEY, _BUCKET, _PART = "key", "bucket", "part"
"""Names that begin with an underscore do not reach Python: Spark goes through named tuples."""
_STATE = StructType().add("packed", "binary")
_PLACE = StructType().add("part", "integer")
_KEYS = msgspec.msgpack.Decoder(dict[str, tuple[bytes, int | None]])


class Turn(NamedTuple):
    """What came of a key's turn."""

    packed: bytes | None
    """What is to be remembered; None if nothing."""
    due_us: int | None
    """The event time that the frontier must reach for the key to have a turn without rows."""
    answers: Sequence[Row]


class Keyed(Protocol):
    """What is done with the rows of one key; it must be possible to pickle it."""

    def turn(self, key: str, packed: bytes | None, rows: Sequence[Row], frontier_us: float) -> Turn:
        """Go on from what is remembered with rows that have arrived, in no special order.

        The frontier never goes back, and all rows up to it have arrived. Equal rows, frontiers
        and memories must give equal answers.
        """
        ...


def run_keyed(rows: DataFrame, keyed: Keyed, answers: StructType) -> DataFrame:
    """Give the answers to rows, whose first column is the text of their key.

    Args:
        rows: No column is ever null; in a stream they have a watermark.
        keyed: What to do with the rows of a key.
        answers: The columns of an answer.
    """
    if not rows.isStreaming:
        ordered = rows.repartition(KEY).sortWithinPartitions(KEY)
        run = _Whole(keyed, answers.names, frontier_us())
        return ordered.mapInArrow(run, answers)
    place = F.pmod(F.xxhash64(KEY), F.lit(BUCKETS * PARTS)).cast("int")
    bucketed = rows.select(
        (place % BUCKETS).alias(_BUCKET), (place / BUCKETS).cast("int").alias(_PART), "*"
    )
    return bucketed.groupBy(_BUCKET).transformWithStateInPandas(
        Buckets(keyed, answers.names), answers, outputMode="Append", timeMode="EventTime"
    )


@dataclass(frozen=True)
class _Whole:
    """All rows of a key at once: a batch."""

    keyed: Keyed
    names: Sequence[str]
    frontier_us: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key, waiting = None, list[Any]()
        for batch in batches:
            answers: list[Any] = []
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if row[0] != key:
                    answers += self._turn(key, waiting)
                    key, waiting = row[0], []
                waiting.append(row[1:])
            yield from self._given(answers)
        yield from self._given(self._turn(key, waiting))

    def _turn(self, key: str | None, rows: Sequence[Row]) -> Sequence[Row]:
        return () if key is None else self.keyed.turn(key, None, rows, self.frontier_us).answers

    def _given(self, answers: Sequence[Row]) -> Iterator[pa.RecordBatch]:
        if answers:
            columns = [pa.array(column) for column in zip(*answers, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, list(self.names))


class _Part:
    """The keys of one part of a bucket: what each remembers, and when it is due."""

    def __init__(self, packed: bytes | None) -> None:
        self.keys: dict[str, tuple[bytes, int | None]] = {}
        if packed is not None:
            self.keys = _KEYS.decode(packed)

    def take(self, keyed: Keyed, rows: Mapping[str, Sequence[Row]], frontier: float) -> list[Row]:
        """Give a turn to the keys that have rows or are due."""
        late = {k for k, (_, due) in self.keys.items() if due is not None and due <= frontier}
        answers: list[Row] = []
        for key in sorted(late | rows.keys()):
            packed, _ = self.keys.pop(key, (None, None))
            turn = keyed.turn(key, packed, rows.get(key, ()), frontier)
            answers += turn.answers
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

    def __init__(self, keyed: Keyed, names: Sequence[str]) -> None:
        self._keyed, self._names = keyed, names

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state of the bucket."""
        self._handle = handle
        self._parts = handle.getMapState("parts", _PLACE, _STATE)
        self._dues = handle.getValueState("dues", _STATE)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Take the rows of a batch."""
        parts: dict[int, dict[str, list[Row]]] = {}
        for frame in rows:
            first = frame.columns.get_loc(_PART)
            columns = [frame[name].tolist() for name in frame.columns[first:]]
            for part, text, *row in zip(*columns, strict=True):
                parts.setdefault(part, {}).setdefault(text, []).append(tuple(row))
        yield from self._turns(parts, of_watermark(timerValues.getCurrentWatermarkInMs()))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Give a turn to the keys that are due; Spark removes the timer itself."""
        frontier = of_watermark(timerValues.getCurrentWatermarkInMs())
        yield from self._turns({}, frontier, fired=expiredTimerInfo.getExpiryTimeInMs())

    def _turns(
        self,
        parts: Mapping[int, Mapping[str, Sequence[Row]]],
        frontier: float,
        fired: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        found = self._dues.get()
        timer, dues = msgspec.msgpack.decode(found[0]) if found else (None, {})
        answers: list[Row] = []
        for number in sorted(parts.keys() | {p for p, due in dues.items() if due <= frontier}):
            held = self._parts.getValue((number,))
            part = _Part(held[0] if held else None)
            answers += part.take(self._keyed, parts.get(number, {}), frontier)
            self._keep(number, part, dues, is_held=held is not None)
        self._wake_at(min(dues.values(), default=None), None if timer == fired else timer, dues)
        if answers:
            columns = zip(*answers, strict=True)
            yield pd.DataFrame(dict(zip(self._names, columns, strict=True)))

    def _keep(self, number: int, part: _Part, dues: dict[int, int], *, is_held: bool) -> None:
        packed, due = part.pack(), part.due_us
        if packed is not None:
            self._parts.updateValue((number,), (packed,))
        elif is_held:
            self._parts.removeKey((number,))
        dues.pop(number, None)
        if due is not None:
            dues[number] = due

    def _wake_at(self, due_us: int | None, timer: int | None, dues: Mapping[int, int]) -> None:
        wanted = None if due_us is None else -(-due_us // 1000)
        if wanted != timer:
            if timer is not None:
                self._handle.deleteTimer(timer)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        if wanted is None:
            self._dues.clear()
        else:
            self._dues.update((msgspec.msgpack.encode((wanted, dues)),))
