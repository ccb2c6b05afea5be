"""The graph of a program: each node makes the RDD of a batch from those of its parents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from millstream.dstream.map_state import StateMapping
from millstream.dstream.states import Emitting
from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import RDD

    from millstream.dstream.computation import Computation
    from millstream.dstream.map_state import StateSpec
    from millstream.dstream.sources import BatchSource
    from millstream.dstream.states import Version
    from millstream.errors import Location

_INCREMENTAL_FROM = 5
"""So many slides long must a window be to be kept incrementally; else Spark sums it up anew."""


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """One DStream."""

    parents: tuple[Node, ...]
    slide_ms: int
    """Between two of its RDDs."""
    at: Location
    """Where the user called for it."""

    @abstractmethod
    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Make the RDD of a batch; None if there is none."""

    def parent_kept_ms(self, kept_ms: int) -> int:
        """How long RDDs of parents are kept if those of this node are kept so long."""
        return kept_ms


@dataclass(frozen=True, eq=False)
class SourceNode(Node):
    """An input: its RDDs come from outside."""

    source: BatchSource

    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Read what the batch was planned with."""
        return batches.read(self, ms)


@dataclass(frozen=True, eq=False)
class TransformNode(Node):
    """A function of the time and of one RDD, or of several."""

    function: Callable[..., RDD[Any] | None]
    """Called with the time of the batch, then with the RDD of each parent."""
    missing: str = "skip"
    """If a parent has no RDD in a batch: `skip`, `empty` (an empty one is taken) or `refuse`."""

    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Call the function."""
        rdds = [batches.rdd(parent, ms) for parent in self.parents]
        if None in rdds:
            if self.missing == "skip":
                return None
            if self.missing == "refuse":
                raise fault("DSTREAM_NO_RDD", at=self.at, time=batch_time(ms))
            rdds = [batches.context.emptyRDD() if rdd is None else rdd for rdd in rdds]
        return self.function(batch_time(ms), *rdds)


@dataclass(frozen=True, eq=False)
class WindowNode(Node):
    """The RDDs of the last batches together."""

    window_ms: int

    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Unite the RDDs of the window."""
        [parent] = self.parents
        return batches.union(batches.between(parent, ms - self.window_ms, ms))

    def parent_kept_ms(self, kept_ms: int) -> int:
        """As long as the window reaches back."""
        return kept_ms + self.window_ms


@dataclass(frozen=True, eq=False)
class StateNode(Node):
    """A node with a state: what it is at the end of a batch depends on all batches before."""

    number: int
    """Among the nodes with state, in the order of the program."""
    buckets: int

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the home records of it."""

    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Read the state at the end of a batch."""
        version = self.version(batches, ms)
        return None if version is None else batches.state(self.number).pairs(version)

    def version(self, batches: Computation, ms: int) -> Version | None:
        """Return the version of a batch, which is written now unless it is there."""
        state = batches.state(self.number)
        if found := state.at(ms):
            return found
        previous_ms = batches.previous(self, ms)
        if previous_ms is not None and state.at(previous_ms) is None:
            batches.rdd(self, previous_ms)
        return self.advance(batches, ms)

    @abstractmethod
    def advance(self, batches: Computation, ms: int) -> Version | None:
        """Write the version of a batch; None if the state does not begin yet."""

    def parent_kept_ms(self, kept_ms: int) -> int:  # noqa: ARG002
        """One step: older versions are read, not computed again."""
        return self.slide_ms


@dataclass(frozen=True, eq=False)
class UpdateNode(StateNode):
    """The state of `updateStateByKey`."""

    function: Callable[[list[Any], Any], Any]
    initial: RDD[Any] | None = None

    @property
    def kind(self) -> str:
        """Its operation."""
        return "updateStateByKey"

    def advance(self, batches: Computation, ms: int) -> Version | None:
        """Call the function for every key, those without new values too."""
        state = batches.state(self.number)
        if self.initial is not None:
            state.start_with(batches.zero_ms, self.buckets, self.initial)
        rows = batches.rdd(self.parents[0], ms)
        if rows is None and (last := state.before(ms)):
            return last
        if rows is None:
            return None
        return state.write(ms, self.buckets, rows, partial(_update, self.function))


@dataclass(frozen=True, eq=False)
class MapStateNode(StateNode):
    """The state of `mapWithState`, and what its function returns."""

    spec: StateSpec

    @property
    def kind(self) -> str:
        """Its operation."""
        return "mapWithState"

    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Read what the function returned in a batch."""
        version = self.version(batches, ms)
        return None if version is None else batches.state(self.number).emitted(version)

    def advance(self, batches: Computation, ms: int) -> Version | None:
        """Call the function for every new value, and for every key that times out."""
        state = batches.state(self.number)
        is_first = state.before(ms) is None
        if is_first and (first := self.spec.initial_pairs(batches.context)) is not None:
            # As in Spark, it is as old as the first batch.
            timed = first.mapValues(lambda value: (value, ms))
            state.start_with(batches.zero_ms, self.buckets, timed)
        rows = batches.rdd(self.parents[0], ms)
        spec = self.spec
        mapping = StateMapping(spec.called, batch_time(ms), ms, spec.timeout_ms)
        return state.write(ms, self.buckets, rows, Emitting(mapping.update))


@dataclass(frozen=True, eq=False)
class SnapshotNode(Node):
    """The whole state of `mapWithState` at the end of each batch."""

    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Read the state."""
        [mapped] = self.parents
        assert isinstance(mapped, MapStateNode)
        version = mapped.version(batches, ms)
        if version is None:
            return None
        return batches.state(mapped.number).pairs(version).mapValues(lambda held: held[0])


@dataclass(frozen=True, eq=False)
class ReducedWindowNode(StateNode):
    """A reduction by key over a window, from the last window and what entered and left."""

    function: Callable[[Any, Any], Any]
    inverse: Callable[[Any, Any], Any]
    window_ms: int
    keep: Callable[[Any], bool] | None = field(default=None)

    @property
    def kind(self) -> str:
        """Its operation, and the window: what left is taken from what had entered."""
        return f"reduceByKeyAndWindow of {self.window_ms} ms each {self.slide_ms} ms"

    @cached_property
    def is_incremental(self) -> bool:
        """Whether the window is long enough for the inverse to pay off, as in Spark."""
        return self.window_ms >= self.slide_ms * _INCREMENTAL_FROM

    def compute(self, batches: Computation, ms: int) -> RDD[Any] | None:
        """Reduce the window."""
        if self.is_incremental:
            return super().compute(batches, ms)
        return self._whole(batches, ms)

    def advance(self, batches: Computation, ms: int) -> Version | None:
        """Add what entered to the last window, and take away what left."""
        [parent] = self.parents
        state = batches.state(self.number)
        last = state.before(ms)
        if last is None:
            whole = self._whole(batches, ms)
            return None if whole is None else state.write(ms, self.buckets, whole, _replace)
        begin_ms, previous_ms = ms - self.window_ms, last.ms
        left = batches.between(parent, previous_ms - self.window_ms, min(begin_ms, previous_ms))
        entered = batches.between(parent, max(begin_ms, previous_ms), ms)
        marked = [
            batches.union(left).mapValues(lambda value: (False, value)),
            batches.union(entered).mapValues(lambda value: (True, value)),
        ]
        slide = partial(_slide, self.function, self.inverse, self.keep)
        return state.write(ms, self.buckets, batches.union(marked), slide)

    def parent_kept_ms(self, kept_ms: int) -> int:
        """As long as the window reaches back from the batch before."""
        back_ms = self.slide_ms if self.is_incremental else kept_ms
        return back_ms + self.window_ms

    def _whole(self, batches: Computation, ms: int) -> RDD[Any] | None:
        [parent] = self.parents
        rdds = batches.between(parent, ms - self.window_ms, ms)
        if not rdds:
            return None
        reduced = batches.union(rdds).reduceByKey(self.function, self.buckets)
        return reduced if self.keep is None else reduced.filter(self.keep)


def batch_time(ms: int) -> datetime:
    """Return the time of a batch as functions get it: in the time zone of the machine, naive."""
    return datetime.fromtimestamp(ms / 1000)  # noqa: DTZ006


def _update(
    function: Callable[[list[Any], Any], Any], held: Iterator[Any], rows: Iterator[Any]
) -> Iterator[Any]:
    arrived: dict[Any, list[Any]] = {}
    for key, value in rows:
        if key in arrived:
            arrived[key].append(value)
        else:
            arrived[key] = [value]
    for key, state in held:
        changed = function(arrived.pop(key, []), state)
        if changed is not None:
            yield key, changed
    for key, values in arrived.items():
        changed = function(values, None)
        if changed is not None:
            yield key, changed


def _replace(held: Iterable[Any], rows: Iterator[Any]) -> Iterator[Any]:  # noqa: ARG001
    return rows


def _slide(
    function: Callable[[Any, Any], Any],
    inverse: Callable[[Any, Any], Any],
    keep: Callable[[Any], bool] | None,
    held: Iterator[Any],
    rows: Iterator[Any],
) -> Iterator[Any]:
    entered: dict[Any, Any] = {}
    left: dict[Any, Any] = {}
    for key, (has_entered, value) in rows:
        side = entered if has_entered else left
        side[key] = function(side[key], value) if key in side else value
    for key, value in _slid(function, inverse, held, entered, left):
        if keep is None or keep((key, value)):
            yield key, value


def _slid(
    function: Callable[[Any, Any], Any],
    inverse: Callable[[Any, Any], Any],
    held: Iterator[Any],
    entered: dict[Any, Any],
    left: dict[Any, Any],
) -> Iterator[Any]:
    for key, state in held:
        value = state
        # In pyspark, a reduced value of None takes nothing away.
        if left.get(key) is not None:
            value = inverse(value, left[key])
        if key in entered:
            value = function(value, entered.pop(key))
        yield key, value
    yield from entered.items()


def nodes_of(outputs: Sequence[Node]) -> list[Node]:
    """Return all nodes that outputs need, each after its parents."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in found:
            for parent in node.parents:
                visit(parent)
            found[node] = None

    for output in outputs:
        visit(output)
    return list(found)
