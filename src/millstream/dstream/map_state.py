"""`mapWithState`: a function of a key, a value and the state of the key, with a time-out."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark import RDD

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from pyspark import SparkContext

S = TypeVar("S")

_WITH_TIME = 4


class State(Generic[S]):
    """The state of one key, while a function looks at it and changes it."""

    __slots__ = ("_is_defined", "_is_removed", "_is_timing_out", "_is_updated", "_value")

    def __init__(self, value: S | None, *, is_defined: bool, is_timing_out: bool = False) -> None:
        self._value, self._is_defined, self._is_timing_out = value, is_defined, is_timing_out
        self._is_updated = self._is_removed = False

    def exists(self) -> bool:
        """Return whether the key has a state."""
        return self._is_defined

    def get(self) -> S:
        """Return the state.

        Raises:
            DSTREAM_STATE_OF_KEY: There is none.
        """
        if not self._is_defined:
            raise fault("DSTREAM_STATE_OF_KEY", operation="get", why="it is not set")
        return self._value  # type: ignore[return-value]

    def getOption(self) -> S | None:
        """Return the state; None if there is none."""
        return self._value if self._is_defined else None

    def update(self, newState: S) -> None:
        """Set the state.

        Raises:
            DSTREAM_STATE_OF_KEY: It was removed, or it times out.
        """
        self._refuse_change("update")
        self._value, self._is_defined, self._is_updated = newState, True, True

    def remove(self) -> None:
        """Remove the state.

        Raises:
            DSTREAM_STATE_OF_KEY: It was removed before, or it times out.
        """
        self._refuse_change("remove")
        self._value, self._is_defined = None, False
        self._is_updated, self._is_removed = False, True

    def isTimingOut(self) -> bool:
        """Return whether the key has had no value for the time-out, and goes after this call."""
        return self._is_timing_out

    def _refuse_change(self, operation: str) -> None:
        if self._is_removed:
            raise fault("DSTREAM_STATE_OF_KEY", operation=operation, why="it is removed")
        if self._is_timing_out:
            raise fault("DSTREAM_STATE_OF_KEY", operation=operation, why="it is timing out")


@dataclass(frozen=True)
class StateSpec:
    """What `mapWithState` does; made by `StateSpec.function` and completed by the others."""

    called: Callable[..., Any]
    pairs: RDD[Any] | tuple[Any, ...] | None = None
    partitions: int | None = None
    timeout_ms: int | None = None

    @staticmethod
    def function(mappingFunction: Callable[..., Any]) -> StateSpec:
        """Give the function: of (key, value, state), or of (time, key, value, state).

        What it returns is an element of the resulting stream, unless it is None. The value is None
        when the key times out.

        Raises:
            DSTREAM_FUNCTION: It takes another number of arguments.
        """
        count = argument_count(mappingFunction)
        if count not in (_WITH_TIME - 1, _WITH_TIME):
            raise fault("DSTREAM_FUNCTION", operation="StateSpec.function", count="three or four")
        return StateSpec(mappingFunction)

    def initialState(self, rdd: RDD[Any] | Iterable[Any]) -> StateSpec:
        """Begin with a state for some keys, given as pairs."""
        return replace(self, pairs=rdd if isinstance(rdd, RDD) else tuple(rdd))

    def numPartitions(self, numPartitions: int) -> StateSpec:
        """Spread the keys over so many buckets."""
        return replace(self, partitions=numPartitions)

    def timeout(self, idleDuration: float) -> StateSpec:
        """Remove a key that has had no value for so many seconds, of the times of batches."""
        return replace(self, timeout_ms=int(idleDuration * 1000))

    def initial_pairs(self, context: SparkContext) -> RDD[Any] | None:
        """Return the initial state."""
        if self.pairs is None or isinstance(self.pairs, RDD):
            return self.pairs
        return context.parallelize(self.pairs)


def argument_count(function: Callable[..., Any]) -> int:
    """Count the arguments of a function as pyspark does, defaults among them."""
    code = getattr(function, "__code__", None)
    if code is not None:
        return int(code.co_argcount) - (1 if inspect.ismethod(function) else 0)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(function).parameters.values())


@dataclass(frozen=True)
class StateMapping:
    """The function of `mapWithState` in one batch."""

    function: Callable[..., Any]
    time: datetime
    ms: int
    timeout_ms: int | None

    def update(
        self, held: Iterator[Any], rows: Iterator[Any], emit: Callable[[Any], None]
    ) -> Iterator[Any]:
        """Yield the state of every key of a bucket, each with when it was last touched."""
        with_time = argument_count(self.function) == _WITH_TIME

        def call(*given: Any) -> None:
            returned = self.function(*((self.time, *given) if with_time else given))
            if returned is not None:
                emit(returned)

        arrived: dict[Any, list[Any]] = {}
        for key, value in rows:
            arrived.setdefault(key, []).append(value)
        for key, kept in _all(held, arrived):
            current = kept
            for value in arrived.get(key, ()):
                current = self._touched(call, key, value, current)
            if current is not None and self._is_idle(current):
                call(key, None, State(current[0], is_defined=True, is_timing_out=True))
            elif current is not None:
                yield key, current

    def _touched(self, call: Callable[..., None], key: Any, value: Any, kept: Any) -> Any:
        state = State(kept[0], is_defined=True) if kept else State(None, is_defined=False)
        call(key, value, state)
        # A value postpones the time-out even if the function leaves the state as it is.
        return (state.getOption(), self.ms) if state.exists() else None

    def _is_idle(self, kept: Any) -> bool:
        return self.timeout_ms is not None and bool(kept[1] < self.ms - self.timeout_ms)


def _all(held: Iterator[Any], arrived: dict[Any, list[Any]]) -> Iterator[tuple[Any, Any]]:
    seen = set()
    for key, kept in held:
        if key in arrived:
            seen.add(key)
        yield key, kept
    yield from ((key, None) for key in arrived if key not in seen)
