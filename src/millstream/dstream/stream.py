"""DStreams: what is done with the RDD of every batch, under the names and signatures of pyspark."""

from __future__ import annotations

import operator
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.core.rdd import portable_hash
from pyspark.resultiterable import ResultIterable
from pyspark.storagelevel import StorageLevel

from millstream.dstream.map_state import argument_count
from millstream.dstream.node import (
    MapStateNode,
    Node,
    ReducedWindowNode,
    SnapshotNode,
    TransformNode,
    UpdateNode,
    WindowNode,
)
from millstream.dstream.program import here
from millstream.dstream.store import StoreOutput
from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark import RDD, SparkContext

    from millstream.dstream.context import StreamingContext
    from millstream.dstream.map_state import StateSpec

T = TypeVar("T")


class DStream(Generic[T]):
    """A stream as a sequence of RDDs, one for each batch."""

    def __init__(self, node: Node, ssc: StreamingContext) -> None:
        self._node, self._ssc = node, ssc
        self._sc: SparkContext = ssc.sparkContext
        self.is_cached = False
        self.is_checkpointed = False

    def context(self) -> StreamingContext:
        """Return the context of this stream."""
        return self._ssc

    # What all else is made of.

    def transform(self, func: Callable[..., Any]) -> TransformedDStream[Any]:
        """Apply a function to each RDD; it takes the RDD, or the time and the RDD.

        Raises:
            DSTREAM_FUNCTION: It takes another number of arguments.
        """
        return TransformedDStream(self, func)

    def transformWith(
        self,
        func: Callable[..., Any],
        other: DStream[Any],
        keepSerializer: bool = False,  # noqa: ARG002 - every RDD knows its own
    ) -> DStream[Any]:
        """Apply a function to each RDD of this stream and of another.

        It takes both RDDs, or the time and both.

        Raises:
            DSTREAM_FUNCTION: It takes another number of arguments.
        """
        timed = _with_time(func, 2, "transformWith")
        parents = (self._node, other._node)
        return self._with(
            TransformNode(parents, self._node.slide_ms, here(), timed, missing="empty")
        )

    def foreachRDD(self, func: Callable[..., Any] | StoreOutput) -> None:
        """Apply a function to each RDD of this stream; it may take the time before the RDD.

        It runs at least once for each batch: a batch that runs again has the same time and rows.
        With `rows_into(…)` instead of a function, the rows go into a store exactly once.
        """
        action = func if isinstance(func, StoreOutput) else _with_time(func, 1, "foreachRDD")
        self._ssc._add_output(self._node, action, "foreachRDD")

    def persist(self, storageLevel: StorageLevel) -> DStream[T]:
        """Keep the RDDs of this stream with a storage level while windows read them."""
        self.is_cached = True
        self._ssc._persist(self._node, storageLevel)
        return self

    def cache(self) -> DStream[T]:
        """Keep the RDDs of this stream in memory while windows read them."""
        return self.persist(StorageLevel.MEMORY_ONLY)

    def checkpoint(self, interval: int) -> DStream[T]:  # noqa: ARG002
        """Do nothing: state has no lineage that grows, and needs no checkpoints."""
        self.is_checkpointed = True
        return self

    def slice(self, begin: datetime | int, end: datetime | int) -> list[RDD[T]]:
        """Return the RDDs from one time to another, both included; only while the program runs."""
        return self._ssc._slice(self._node, _to_ms(begin), _to_ms(end))

    # Element by element.

    def mapPartitionsWithIndex(
        self,
        f: Callable[[int, Iterable[Any]], Iterable[Any]],
        preservesPartitioning: bool = False,
    ) -> DStream[Any]:
        """Apply a function to each partition and its index."""
        return self.transform(lambda rdd: rdd.mapPartitionsWithIndex(f, preservesPartitioning))

    def mapPartitions(
        self,
        f: Callable[[Iterable[Any]], Iterable[Any]],
        preservesPartitioning: bool = False,
    ) -> DStream[Any]:
        """Apply a function to each partition."""

        def apply(_: int, iterator: Iterable[Any]) -> Iterable[Any]:
            return f(iterator)

        return self.mapPartitionsWithIndex(apply, preservesPartitioning)

    def map(self, f: Callable[[T], Any], preservesPartitioning: bool = False) -> DStream[Any]:
        """Apply a function to each element."""
        return self.mapPartitions(lambda iterator: map(f, iterator), preservesPartitioning)

    def flatMap(
        self, f: Callable[[T], Iterable[Any]], preservesPartitioning: bool = False
    ) -> DStream[Any]:
        """Apply a function to each element; the elements of what it returns are the result."""
        return self.mapPartitions(
            lambda iterator: chain.from_iterable(map(f, iterator)), preservesPartitioning
        )

    def filter(self, f: Callable[[T], Any]) -> DStream[T]:
        """Keep the elements for which a function is true."""
        return self.mapPartitions(lambda iterator: filter(f, iterator), True)  # noqa: FBT003

    def glom(self) -> DStream[list[T]]:
        """Put the elements of each partition into one list."""
        return self.mapPartitions(lambda iterator: [list(iterator)])

    def repartition(self, numPartitions: int) -> DStream[T]:
        """Spread the elements of each RDD over so many partitions."""
        return self.transform(lambda rdd: rdd.repartition(numPartitions))

    def count(self) -> DStream[int]:
        """Count the elements of each RDD."""
        return self.mapPartitions(lambda i: [sum(1 for _ in i)]).reduce(operator.add)

    def reduce(self, func: Callable[[T, T], T]) -> DStream[T]:
        """Reduce each RDD to one element."""
        return self.map(lambda x: (None, x)).reduceByKey(func, 1).map(lambda x: x[1])

    def countByValue(self) -> DStream[tuple[T, int]]:
        """Count each distinct element of each RDD."""
        return self.map(lambda x: (x, 1)).reduceByKey(operator.add)

    def union(self, other: DStream[Any]) -> DStream[Any]:
        """Put the elements of two streams together.

        Raises:
            DSTREAM_ARGUMENT: Their RDDs are not made at the same times.
        """
        if self._slideDuration != other._slideDuration:
            raise fault(
                "DSTREAM_ARGUMENT",
                at=here(),
                operation="union",
                why="the two DStream should have same slide duration",
                use="give both the same window slide",
            )
        return self.transformWith(lambda a, b: a.union(b), other, True)  # noqa: FBT003

    # Pairs of a key and a value.

    def mapValues(self: DStream[Any], f: Callable[[Any], Any]) -> DStream[Any]:
        """Apply a function to the value of each pair."""
        return self.map(lambda kv: (kv[0], f(kv[1])), preservesPartitioning=True)

    def flatMapValues(self: DStream[Any], f: Callable[[Any], Iterable[Any]]) -> DStream[Any]:
        """Apply a function to the value of each pair; make a pair of each element it returns."""
        return self.flatMap(lambda kv: ((kv[0], x) for x in f(kv[1])), preservesPartitioning=True)

    def combineByKey(
        self,
        createCombiner: Callable[[Any], Any],
        mergeValue: Callable[[Any, Any], Any],
        mergeCombiners: Callable[[Any, Any], Any],
        numPartitions: int | None = None,
    ) -> DStream[Any]:
        """Combine the values of each key of each RDD."""
        tasks = self._tasks(numPartitions)
        return self.transform(
            lambda rdd: rdd.combineByKey(createCombiner, mergeValue, mergeCombiners, tasks)
        )

    def reduceByKey(
        self, func: Callable[[Any, Any], Any], numPartitions: int | None = None
    ) -> DStream[Any]:
        """Reduce the values of each key of each RDD."""
        return self.combineByKey(lambda x: x, func, func, numPartitions)

    def groupByKey(self, numPartitions: int | None = None) -> DStream[Any]:
        """Put the values of each key of each RDD together."""
        tasks = self._tasks(numPartitions)
        return self.transform(lambda rdd: rdd.groupByKey(tasks))

    def partitionBy(
        self, numPartitions: int, partitionFunc: Callable[[Any], int] = portable_hash
    ) -> DStream[T]:
        """Spread the pairs of each RDD over so many partitions, by their keys."""
        return self.transform(lambda rdd: rdd.partitionBy(numPartitions, partitionFunc))

    def cogroup(self, other: DStream[Any], numPartitions: int | None = None) -> DStream[Any]:
        """Put the values of each key of two streams together, a list for each stream."""
        tasks = self._tasks(numPartitions)
        return self.transformWith(lambda a, b: a.cogroup(b, tasks), other)

    def join(self, other: DStream[Any], numPartitions: int | None = None) -> DStream[Any]:
        """Pair the values of the keys that both streams have."""
        tasks = self._tasks(numPartitions)
        return self.transformWith(lambda a, b: a.join(b, tasks), other)

    def leftOuterJoin(self, other: DStream[Any], numPartitions: int | None = None) -> DStream[Any]:
        """Pair the values of the keys of this stream with those of another, or with None."""
        tasks = self._tasks(numPartitions)
        return self.transformWith(lambda a, b: a.leftOuterJoin(b, tasks), other)

    def rightOuterJoin(self, other: DStream[Any], numPartitions: int | None = None) -> DStream[Any]:
        """Pair the values of the keys of another stream with those of this one, or with None."""
        tasks = self._tasks(numPartitions)
        return self.transformWith(lambda a, b: a.rightOuterJoin(b, tasks), other)

    def fullOuterJoin(self, other: DStream[Any], numPartitions: int | None = None) -> DStream[Any]:
        """Pair the values of the keys of either stream, with None where one has none."""
        tasks = self._tasks(numPartitions)
        return self.transformWith(lambda a, b: a.fullOuterJoin(b, tasks), other)

    # Windows.

    def window(self, windowDuration: int, slideDuration: int | None = None) -> DStream[T]:
        """Put the RDDs of the last seconds together, once in every slide.

        Raises:
            DSTREAM_WINDOW: A duration is no multiple of the slide of this stream.
        """
        self._validate_window_param(windowDuration, slideDuration)
        slide_ms = self._node.slide_ms if slideDuration is None else int(slideDuration * 1000)
        self._ssc._keep_for_window(self._node)
        return self._with(
            WindowNode((self._node,), slide_ms, here(), window_ms=int(windowDuration * 1000))
        )

    def reduceByWindow(
        self,
        reduceFunc: Callable[[T, T], T],
        invReduceFunc: Callable[[T, T], T] | None,
        windowDuration: int,
        slideDuration: int,
    ) -> DStream[T]:
        """Reduce a window to one element; with an inverse, from the window before."""
        reduced = self.map(lambda x: (1, x)).reduceByKeyAndWindow(
            reduceFunc, invReduceFunc, windowDuration, slideDuration, 1
        )
        return reduced.map(lambda kv: kv[1])

    def countByWindow(self, windowDuration: int, slideDuration: int) -> DStream[int]:
        """Count the elements of a window, from the window before."""
        return self.map(lambda _: 1).reduceByWindow(
            operator.add, operator.sub, windowDuration, slideDuration
        )

    def countByValueAndWindow(
        self, windowDuration: int, slideDuration: int, numPartitions: int | None = None
    ) -> DStream[Any]:
        """Count each distinct element of a window, from the window before."""
        counted = self.map(lambda x: (x, 1)).reduceByKeyAndWindow(
            operator.add, operator.sub, windowDuration, slideDuration, numPartitions
        )
        return counted.filter(lambda kv: kv[1] > 0)

    def groupByKeyAndWindow(
        self, windowDuration: int, slideDuration: int, numPartitions: int | None = None
    ) -> DStream[Any]:
        """Put the values of each key of a window together."""
        grouped = self.mapValues(lambda x: [x]).reduceByKeyAndWindow(
            _extended, _shortened, windowDuration, slideDuration, numPartitions
        )
        return grouped.mapValues(ResultIterable)

    def reduceByKeyAndWindow(
        self,
        func: Callable[[Any, Any], Any],
        invFunc: Callable[[Any, Any], Any] | None,
        windowDuration: int,
        slideDuration: int | None = None,
        numPartitions: int | None = None,
        filterFunc: Callable[[Any], bool] | None = None,
    ) -> DStream[Any]:
        """Reduce the values of each key of a window.

        With an inverse and a window of five slides or more, from the window before: what entered is
        added, what left is taken away. The reduced window is kept in the home.

        Raises:
            DSTREAM_WINDOW: A duration is no multiple of the slide of this stream.
        """
        self._validate_window_param(windowDuration, slideDuration)
        tasks = self._tasks(numPartitions)
        reduced = self.reduceByKey(func, tasks)
        if not invFunc:
            return reduced.window(windowDuration, slideDuration).reduceByKey(func, tasks)
        self._ssc._keep_for_window(reduced._node)
        node = ReducedWindowNode(
            (reduced._node,),
            int(slideDuration * 1000) if slideDuration is not None else self._node.slide_ms,
            here(),
            number=self._ssc._next_state(),
            buckets=tasks,
            function=func,
            inverse=invFunc,
            window_ms=int(windowDuration * 1000),
            keep=filterFunc,
        )
        return self._with(node)

    # State.

    def updateStateByKey(
        self,
        updateFunc: Callable[[Any, Any], Any],
        numPartitions: int | None = None,
        initialRDD: RDD[Any] | Iterable[Any] | None = None,
    ) -> DStream[Any]:
        """Keep a state for each key, which a function makes of the new values and the last state.

        It is called for every key in every batch; a key for which it returns None is removed.
        """
        node = UpdateNode(
            (self._node,),
            self._node.slide_ms,
            here(),
            number=self._ssc._next_state(),
            buckets=self._tasks(numPartitions),
            function=updateFunc,
            initial=self._ssc._initial(initialRDD),
        )
        return self._with(node)

    def mapWithState(self, spec: StateSpec) -> MapWithStateDStream:
        """Keep a state for each key, which a function reads and changes with each new value."""
        node = MapStateNode(
            (self._node,),
            self._node.slide_ms,
            here(),
            number=self._ssc._next_state(),
            buckets=self._tasks(spec.partitions),
            spec=spec,
        )
        self._ssc._check_not_started("mapWithState")
        return MapWithStateDStream(node, self._ssc)

    # Outputs.

    def pprint(self, num: int = 10) -> None:
        """Print the time of each batch and its first elements."""

        def print_first(time: datetime, rdd: RDD[Any]) -> None:
            taken = rdd.take(num + 1)
            rule = "-------------------------------------------"
            shown = [rule, f"Time: {time}", rule, *map(str, taken[:num])]
            print("\n".join([*shown, *(["..."] if len(taken) > num else []), ""]))  # noqa: T201

        self._ssc._add_output(self._node, print_first, "pprint")

    def saveAsTextFiles(self, prefix: str, suffix: str | None = None) -> None:
        """Save each RDD as text files in a folder named `prefix-TIME_IN_MS[.suffix]`."""

        def save(time: datetime, rdd: RDD[Any]) -> None:
            name = f"{prefix}-{_to_ms(time)}" + ("" if suffix is None else f".{suffix}")
            try:
                rdd.saveAsTextFile(name)
            except Py4JJavaError as error:
                if "FileAlreadyExistsException" not in str(error):
                    raise
                # A batch that runs again finds the folder of its first run, perhaps half written.
                if _delete_unless_saved(rdd.context, name):
                    rdd.saveAsTextFile(name)

        self._ssc._add_output(self._node, save, "saveAsTextFiles")

    @property
    def _slideDuration(self) -> float:
        return self._node.slide_ms / 1000

    def _validate_window_param(self, window: float, slide: float | None) -> None:
        slide_ms = self._node.slide_ms
        for name, duration in (("windowDuration", window), ("slideDuration", slide)):
            if duration is not None and (int(duration * 1000) % slide_ms or duration <= 0):
                raise fault(
                    "DSTREAM_WINDOW", at=here(), name=name, given=duration, slide_ms=slide_ms
                )

    def _tasks(self, count: int | None) -> int:
        return self._sc.defaultParallelism if count is None else count

    def _with(self, node: Node) -> DStream[Any]:
        self._ssc._check_not_started("an operation")
        return DStream(node, self._ssc)


class TransformedDStream(DStream[T]):
    """A stream whose RDDs a function makes of those of another."""

    def __init__(self, prev: DStream[Any], func: Callable[..., Any]) -> None:
        prev._ssc._check_not_started("an operation")
        timed = _with_time(func, 1, "transform")
        node = TransformNode((prev._node,), prev._node.slide_ms, here(), timed)
        super().__init__(node, prev._ssc)
        self.prev, self.func = prev, timed


class MapWithStateDStream(DStream[Any]):
    """What the function of `mapWithState` returns, and the state that it keeps."""

    def stateSnapshots(self) -> DStream[Any]:
        """Return the whole state at the end of each batch, as pairs."""
        return self._with(SnapshotNode((self._node,), self._node.slide_ms, here()))


def _with_time(func: Callable[..., Any], rdds: int, operation: str) -> Callable[..., Any]:
    count = argument_count(func)
    if count == rdds:
        return lambda _, *given: func(*given)
    if count != rdds + 1:
        counts = "one or two" if rdds == 1 else "two or three"
        raise fault("DSTREAM_FUNCTION", at=here(), operation=operation, count=counts)
    return func


def _extended(one: list[Any], other: list[Any]) -> list[Any]:
    one.extend(other)
    return one


def _shortened(one: list[Any], other: list[Any]) -> list[Any]:
    return one[len(other) :]


def _to_ms(moment: datetime | float) -> int:
    if isinstance(moment, datetime):
        return round(moment.timestamp() * 1000)
    return int(moment * 1000)


def _delete_unless_saved(context: SparkContext, folder: str) -> bool:
    java: Any = context
    path = java._jvm.org.apache.hadoop.fs.Path(folder)
    files = path.getFileSystem(java._jsc.hadoopConfiguration())
    # The last file that Hadoop writes.
    if files.exists(java._jvm.org.apache.hadoop.fs.Path(path, "_SUCCESS")):
        return False
    files.delete(path, True)  # noqa: FBT003
    return True
