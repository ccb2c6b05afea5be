"""The first row of a key by event time, and none for a while after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from millstream.model.duration import to_text
from millstream.model.state import KeptOperator
from millstream.operators.build_context import Hold, notes
from millstream.operators.columns import quoted, typed, types_of
from millstream.operators.event_time import event_time, length_us
from millstream.operators.state.buckets import KEY, run_keyed
from millstream.operators.state.parts import TurnResult
from millstream.operators.state.row_text import as_key, as_text, check_kept_types, from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from millstream.errors import Location

_CALL = "ms.dedup"
_ANSWERS = StructType([StructField("row", StringType())])


class _OnceMemory(msgspec.Struct, array_like=True):
    """What is known of a key: the time of its last kept row, and rows that are not final."""

    kept_us: int | None
    waiting: list[tuple[int, str]]


_MEMORIES = msgspec.msgpack.Decoder(_OnceMemory)


@dataclass(frozen=True)
class Once:
    """Keeps a row if none of its key was kept for a while before it."""

    within_us: int

    def turn(
        self,
        key: str,  # noqa: ARG002
        packed: bytes | None,
        rows: Sequence[tuple[Any, ...]],
        frontier_us: float,
    ) -> TurnResult:
        """Take rows, event time and text, and return those that are kept up to the frontier.

        >>> once = Once(within_us=10)
        >>> turn = once.turn("k", None, [(7, "b"), (0, "a"), (11, "c"), (30, "d")], 20)
        >>> turn.answers, turn.due_us
        ([('a',), ('c',)], 30)
        """
        memory = _MEMORIES.decode(packed) if packed is not None else _OnceMemory(None, [])
        waiting = sorted([*memory.waiting, *((us, text) for us, text in rows)])
        kept, answers = memory.kept_us, list[tuple[Any, ...]]()
        passed = 0
        for us, text in waiting:
            if us > frontier_us:
                break
            passed += 1
            if kept is None or us - kept > self.within_us:
                kept = us
                answers.append((text,))
        waiting = waiting[passed:]
        if kept is not None and kept + self.within_us <= frontier_us:
            kept = None
        if kept is None and not waiting:
            return TurnResult(None, None, answers)
        due = waiting[0][0] if waiting else (kept or 0) + self.within_us
        return TurnResult(msgspec.msgpack.encode(_OnceMemory(kept, waiting)), due, answers)


def once_within(
    rows: DataFrame, keys: Sequence[str], within: str, time: str | None, at: Location
) -> DataFrame:
    """Keep a row if none of its key was kept for a while before it.

    Raises:
        DeclarationError: The event time, its watermark or the length of time does not fit.
    """
    within_us = length_us(within, "within", call=_CALL, why="", at=at)
    name = event_time(rows, time, call=_CALL, at=at)
    check_kept_types(rows, rows.columns, call=_CALL, at=at)
    keyed = rows.select(
        as_key(rows, keys).alias(KEY),
        F.unix_micros(quoted(name)).alias("us"),
        as_text(rows.columns).alias("row"),
    ).where("us IS NOT NULL")
    if rows.isStreaming:
        facts = {
            "keys": typed(rows, keys),
            "within": to_text(timedelta(microseconds=within_us)),
            "the event time": name,
        }
        notes().states.append(KeptOperator(_CALL, facts, types_of(rows, "the rows"), at))
    kept = run_keyed(keyed, Once(within_us), _ANSWERS)
    notes().holds.append(Hold(timedelta()))
    return kept.select(from_text("row", rows, rows.columns).alias("row")).select("row.*")
