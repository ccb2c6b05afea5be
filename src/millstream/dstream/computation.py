"""The RDDs of batches: made when they are first needed, and kept as long as windows read them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Any

from millstream.dstream.java_error import as_of_java
from millstream.dstream.node import SourceNode, StateNode, nodes_of
from millstream.dstream.program import here
from millstream.dstream.states import VersionedState
from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark import RDD, SparkContext
    from pyspark.storagelevel import StorageLevel

    from millstream.dstream.home import Journal, StreamHome
    from millstream.dstream.node import Node
    from millstream.dstream.sources import OpenSource


class Computation:
    """Every node's RDD of every batch that is planned."""

    def __init__(  # noqa: PLR0913 - what a program consists of, and where it runs
        self,
        context: SparkContext,
        outputs: Sequence[Node],
        home: StreamHome,
        journal: Journal,
        zero_ms: int,
        sources: Mapping[SourceNode, OpenSource],
        *,
        remembered_ms: int,
        levels: Mapping[Node, StorageLevel],
    ) -> None:
        self.context, self.zero_ms = context, zero_ms
        self._journal, self._sources, self._levels = journal, sources, levels
        self._nodes = nodes_of(outputs)
        least_ms = {node: max(remembered_ms, node.slide_ms) for node in self._nodes}
        self._kept_ms = _reach_ms(self._nodes, least_ms)
        self._made: dict[Node, dict[int, RDD[Any] | None]] = {node: {} for node in self._nodes}
        self._persisted: set[RDD[Any]] = set()
        # `slice` may be called in another thread than the one that runs the batches.
        self._using = threading.RLock()
        stateful = [node for node in self._nodes if isinstance(node, StateNode)]
        self._states = {n.number: VersionedState(context, home, n.number) for n in stateful}

    def rdd(self, node: Node, ms: int) -> RDD[Any] | None:
        """Return the RDD of a node in a batch; None if it has none, or there is no such batch."""
        with self._using:
            made = self._made[node]
            if ms not in made:
                if not self._has(node, ms):
                    return None
                rdd = node.compute(self, ms)
                level = self._levels.get(node)
                # What the user has persisted stays so.
                if rdd is not None and level is not None and not rdd.is_cached:
                    rdd.persist(level)
                    self._persisted.add(rdd)
                made[ms] = rdd
            return made[ms]

    def between(self, node: Node, after_ms: int, to_ms: int) -> list[RDD[Any]]:
        """Return the RDDs of a node in the batches after a time, up to another."""
        found = (self.rdd(node, ms) for ms in self._times(after_ms + 1, to_ms + 1))
        return [rdd for rdd in found if rdd is not None]

    def slice(self, node: Node, begin_ms: int, end_ms: int) -> list[RDD[Any]]:
        """Return the RDDs from one time to another, both included and rounded down to batches.

        Raises:
            DSTREAM_STATE: No output needs this stream, so that it has no RDDs.
        """
        if node not in self._made:
            refusal = fault(
                "DSTREAM_STATE",
                at=here(),
                operation="slice",
                why="no output of the program needs this stream",
                use="give it an output before the start, such as foreachRDD",
            )
            raise as_of_java(refusal)
        begin_ms -= (begin_ms - self.zero_ms) % node.slide_ms
        return self.between(node, begin_ms - 1, end_ms)

    def previous(self, node: Node, ms: int) -> int | None:
        """Return the last batch of a node before another; None if it is not known any more."""
        times = reversed(self._times(self.zero_ms + 1, ms))
        return next((time for time in times if self._has(node, time)), None)

    def union(self, rdds: Sequence[RDD[Any]]) -> RDD[Any]:
        """Put RDDs together in as many partitions as run at a time; none give an empty one."""
        if not rdds:
            return self.context.emptyRDD()
        # What a window reads is kept by Spark: together, it costs one task of Python, not one each.
        whole, tasks = self.context.union(list(rdds)), self.context.defaultParallelism
        return whole.coalesce(tasks) if whole.getNumPartitions() > tasks else whole

    def read(self, node: SourceNode, ms: int) -> RDD[Any]:
        """Read what a batch was planned with."""
        source = self._sources[node]
        return source.rdd(self._journal.batches[ms].parts[[*self._sources].index(node)])

    def state(self, number: int) -> VersionedState:
        """Return a state."""
        return self._states[number]

    def forget(self, ms: int) -> None:
        """After a batch, release what no later one reads."""
        with self._using:
            self._forget(ms)

    @property
    def slides_ms(self) -> frozenset[int]:
        """The slides of all nodes."""
        return frozenset(node.slide_ms for node in self._nodes)

    @cached_property
    def longest_ms(self) -> int:
        """How long a batch is part of a window, at most."""
        return max(_reach_ms(self._nodes, dict.fromkeys(self._nodes, 0)).values(), default=0)

    def close(self) -> None:
        """Release everything."""
        for rdd in self._persisted:
            rdd.unpersist()
        self._persisted.clear()

    def _forget(self, ms: int) -> None:
        for node, made in self._made.items():
            for time in [time for time in made if time <= ms - self._kept_ms[node]]:
                rdd = made.pop(time)
                if rdd in self._persisted:
                    self._persisted.remove(rdd)
                    rdd.unpersist()
            if isinstance(node, StateNode):
                # The batch may run again, and starts from the version before its own.
                self._states[node.number].forget(ms - self._kept_ms[node] - node.slide_ms)
        longest_ms = max(self._kept_ms.values(), default=0)
        old = self._journal.before(ms - longest_ms)
        for planned in old:
            for source, part in zip(self._sources.values(), planned.parts, strict=True):
                source.forget(part)
        self._journal.forget(old)

    def _has(self, node: Node, ms: int) -> bool:
        is_on_grid = ms > self.zero_ms and (ms - self.zero_ms) % node.slide_ms == 0
        return is_on_grid and ms in self._journal.batches

    def _times(self, from_ms: int, before_ms: int) -> list[int]:
        times = [*self._journal.batches]
        return times[bisect_left(times, from_ms) : bisect_left(times, before_ms)]


def _reach_ms(nodes: Sequence[Node], least_ms: Mapping[Node, int]) -> Mapping[Node, int]:
    kept = dict(least_ms)
    for node in reversed(nodes):
        for parent in node.parents:
            kept[parent] = max(kept[parent], node.parent_kept_ms(kept[node]))
    return kept
