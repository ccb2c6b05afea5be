"""The calls of a function of a key: their order, their arguments, and what happens if one raises.

In event order there is one call for each instant at which the key has rows, and one for each timer
that is due, ordered by time. So the calls do not depend on how the rows arrived: a batch
makes the same ones as a stream.
"""

from __future__ import annotations

import json
import math
import traceback
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.errors import MillstreamError, fault
from millstream.model.state import TIMEOUT
from millstream.operators.state.codec import StateCodec
from millstream.operators.state.parts import TurnResult
from millstream.operators.state.raised_rows import RaisedRow
from millstream.operators.state.timer import Owner, Timer, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.model.schema import Schema
    from millstream.model.state import KeyedState

INITIAL_US = -(2**63)
"""The event time that marks an initial state, not a row."""
UNTIMED_US = INITIAL_US + 1
"""The event time of a row that has none."""

_TTL = ""
"""The timer that only forgets."""
_ROOM = str(Path(__file__).parent)
_US = timedelta(microseconds=1)


@dataclass(frozen=True)
class Calls:
    """A function of a key, and how it is called."""

    declared: KeyedState
    function: Callable[..., Any]
    key: Schema
    columns: Schema
    streams: bool
    """Whether rows come in batches; otherwise all at once, each with the time of the last."""
    tolerates: bool
    """Whether rows that it raises on are quarantined."""
    keeps_time: bool = True
    """Whether there is a clock for timers."""

    @cached_property
    def codec(self) -> StateCodec:
        """Reads and writes what goes in and comes out; made where the calls are."""
        return StateCodec(self.declared, self.key, self.columns)

    @cached_property
    def owner(self) -> Owner:
        """What all timers have in common."""
        refused = "" if self.keeps_time else "the stream has no watermark to go by"
        return Owner(self.declared.name, self.declared.at, refused)

    @cached_property
    def deadlines(self) -> tuple[tuple[str, int], ...]:
        """Timers that are set by each row, and how much later they are due."""
        lengths = (TIMEOUT, self.declared.timeout), (_TTL, self.declared.ttl)
        return tuple((name, length // _US) for name, length in lengths if length is not None)

    @cached_property
    def calls_once(self) -> bool:
        """Whether there is one call for all rows that have arrived."""
        return self.streams and self.declared.order == "arrival"

    def turn(
        self, key: str, packed: bytes | None, rows: Sequence[tuple[Any, ...]], frontier_us: float
    ) -> TurnResult:
        """Make the calls that are due at the frontier, or at the time of the batch."""
        try:
            return _Turn(self, key, packed, rows, frontier_us).run()
        except Exception:
            # Start again, and check each call: it is not known which one raised.
            return _Turn(self, key, packed, rows, frontier_us, careful=True).run()


class _Turn:
    """One turn of one key; there is one for every key of every batch, so it is kept light."""

    __slots__ = (
        "_answers",
        "_calls",
        "_careful",
        "_codec",
        "_declared",
        "_has_called",
        "_key",
        "_memory",
        "_new",
        "_raised",
        "_rows_to",
        "_text",
        "_timers_to",
    )

    def __init__(
        self,
        calls: Calls,
        key: str,
        packed: bytes | None,
        rows: Sequence[tuple[Any, ...]],
        frontier_us: float,
        *,
        careful: bool = False,
    ) -> None:
        self._calls, self._declared, self._careful = calls, calls.declared, careful
        self._codec = calls.codec
        self._text, self._key = key, self._codec.key(key)
        self._memory = self._codec.unpack(packed)
        self._answers: list[tuple[Any, ...]] = []
        self._raised: list[RaisedRow] = []
        self._has_called = False
        self._new = sorted([row[:2] for row in rows])
        self._rows_to = self._timers_to = frontier_us
        if not calls.streams and frontier_us == math.inf:
            self._rows_to = self._timers_to = rows[0][2]
        if self._declared.order == "arrival":
            self._rows_to = math.inf

    def run(self) -> TurnResult:
        memory = self._memory
        self._remove_untimed()
        if self._calls.calls_once:
            self._fire()
            if self._new:
                self._take(self._new, self._arrived_us())
            self._fire()
        else:
            memory.pending += self._new
            ready = sorted(row for row in memory.pending if row[0] <= self._rows_to)
            memory.pending = [row for row in memory.pending if row[0] > self._rows_to]
            for us, same in groupby(ready, key=lambda row: row[0]):
                self._fire(before=us)
                self._take(list(same), us)
            self._fire()
        dues = [us for us, _ in memory.pending]
        dues += memory.timers.values()
        packed = self._codec.pack(memory)
        return TurnResult(packed, min(dues) if dues else None, self._answers, self._raised)

    def _remove_untimed(self) -> None:
        """Remove initial states, and rows without an event time."""
        if not self._new or self._new[0][0] > UNTIMED_US:
            return
        for us, text in self._new:
            if us == INITIAL_US:
                self._memory.state = self._codec.initial(text)
            elif us == UNTIMED_US:
                self._quarantine(text, "its event time is null")
        self._new = [row for row in self._new if row[0] > UNTIMED_US]

    def _arrived_us(self) -> int:
        return self._new[-1][0] if self._declared.clock == "event" else int(self._timers_to)

    def _fire(self, *, before: float = math.inf) -> None:
        """Make the calls for timers that are due, up to a time."""
        while timers := self._memory.timers:
            us, name = min((us, name) for name, us in timers.items())
            if us >= before or us > self._timers_to:
                return
            del timers[name]
            if name != _TTL:
                row_text = json.dumps(
                    {"timer": name, "at": moment(us).isoformat(), "key": self._text}
                )
                self._call((), us, name, row_text)
            is_over = name == TIMEOUT and self._declared.timeout is not None
            if name == _TTL or (is_over and name not in self._memory.timers):
                self._memory.state.clear()
                self._memory.timers.clear()

    def _take(self, rows: list[tuple[int, str]], now_us: int) -> None:
        """Make the call for rows; if it raises, one for each of them."""
        texts = [text for _, text in rows]
        if not self._careful:
            succeeded = self._call(tuple(map(self._codec.row, texts)), now_us, None, "")
        elif len(rows) > 1 and self._call(texts, now_us, None, None):
            succeeded = True
        else:
            succeeded = sum(self._call([text], now_us, None, text) for text in texts) > 0
        if succeeded and self._calls.deadlines:
            self._set_deadlines(now_us)

    def _set_deadlines(self, now_us: int) -> None:
        timers = self._memory.timers
        for name, length_us in self._calls.deadlines:
            if self._codec.is_fresh(self._memory.state):
                timers.pop(name, None)
            else:
                timers[name] = max(timers.get(name, now_us), now_us + length_us)

    def _call(self, rows: Any, now_us: int, fired: str | None, row_text: str | None) -> bool:
        """Call the function; return whether it succeeded.

        Args:
            rows: Rows; in a careful turn, their texts.
            now_us: What time it is.
            fired: The timer it is called for.
            row_text: What to quarantine if it raises; None if each row is then tried on its own.
        """
        memory = self._memory
        if not self._careful:
            if self._has_called:
                # Decoded as in a new turn: a list, not the tuple that it was set to.
                memory.state = self._codec.state(self._codec.packed_state(memory.state))
            self._has_called = True
            self._answers += self._answered(rows, now_us, fired)
            return True
        state, timers = self._codec.packed_state(memory.state), dict(memory.timers)
        memory.state = self._codec.state(state)
        try:
            answers = self._answered(tuple(map(self._codec.row, rows)), now_us, fired)
            self._codec.packed_state(memory.state)
        except (ModuleNotFoundError, MemoryError):
            raise  # it is not the row's fault
        except Exception as error:
            memory.state, memory.timers = self._codec.state(state), timers
            if row_text is not None:
                self._quarantine(row_text, error)
            return False
        self._answers += answers
        return True

    def _answered(self, rows: Any, now_us: int, fired: str | None) -> list[tuple[Any, ...]]:
        timer = Timer(self._memory.timers, now_us, fired, self._calls.owner)
        emitted = self._calls.function(self._key, rows, self._memory.state, timer)
        return [*map(self._codec.answer, emitted)] if emitted is not None else []

    def _quarantine(self, row: str, why: Exception | str) -> None:
        raised = raised_row(self._declared, row, why, tolerates=self._calls.tolerates)
        self._raised.append(raised)


def raised_row(
    declared: KeyedState, row: str, why: Exception | str, *, tolerates: bool
) -> RaisedRow:
    """Return a row for the quarantine.

    Raises:
        STATEFUL_RAISED: There is no quarantine.
    """
    if not tolerates:
        cause = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
        raised = fault(
            "STATEFUL_RAISED", at=declared.at, function=declared.name, cause=cause, row=row
        )
        raise raised from (why if isinstance(why, Exception) else None)
    return RaisedRow(declared.name, row, why if isinstance(why, str) else trace_of(why))


def trace_of(error: Exception) -> str:
    """Return the traceback of an error, without the frames of this package."""
    if isinstance(error, MillstreamError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_ROOM)]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)]
    return "".join([*lines, *traceback.format_exception_only(error)])
