"""The entry point of a functional program: its inputs, its start and its end."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark import RDD
from pyspark.storagelevel import StorageLevel

from millstream.dstream.frame import FrameSource
from millstream.dstream.home import StreamHome, local_folder
from millstream.dstream.java_error import as_of_java
from millstream.dstream.node import Node, SourceNode, StateNode, TransformNode, nodes_of
from millstream.dstream.program import ProgramOutput, StreamProgram, here
from millstream.dstream.receiver import ReceivedSource
from millstream.dstream.run import LiveRun, ProgramRun
from millstream.dstream.sources import FolderSource, QueueSource
from millstream.dstream.stream import DStream
from millstream.errors import MillstreamError, fault
from millstream.systems.socket.source import Socket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, Row, SparkSession

    from millstream.dstream.events import StreamingListener
    from millstream.dstream.sources import BatchSource
    from millstream.dstream.store import StoreOutput
    from millstream.errors import Location

_LOG = logging.getLogger(__name__)


class StreamingContext:
    """A functional program: batches of one interval, made of what its inputs received.

    It is started once and stopped once. Its checkpoint directory is its home: a driver that starts
    the same program with the same directory continues where the last run ended.
    """

    _active: ClassVar[StreamingContext | None] = None

    def __init__(
        self,
        sparkContext: SparkContext,
        batchDuration: int | None = None,
        jssc: object = None,  # noqa: ARG002 - nothing runs in a StreamingContext of Java
    ) -> None:
        if batchDuration is None or round(batchDuration * 1000) < 1:
            raise fault(
                "DSTREAM_ARGUMENT",
                at=here(),
                operation="StreamingContext",
                why=f"a batch duration of {batchDuration!r} is no time",
                use="give seconds, such as StreamingContext(sc, 1)",
            )
        self._sc = sparkContext
        self._check_context("StreamingContext")
        self._interval_ms = round(batchDuration * 1000)
        self._directory: str | None = None
        self._sources: list[SourceNode] = []
        self._outputs: list[ProgramOutput] = []
        self._levels: dict[Node, StorageLevel] = {}
        self._listeners: list[Any] = []
        self._states = 0
        self._remembered_ms = 0
        self._run: ProgramRun | None = None
        self._live: LiveRun | None = None
        self._is_stopped = False
        self._changing = threading.Lock()

    @classmethod
    def getOrCreate(
        cls, checkpointPath: str, setupFunc: Callable[[], StreamingContext]
    ) -> StreamingContext:
        """Make a context that continues in a checkpoint directory, or begins there.

        The function is called in either case: a program that was changed runs as it is now.
        """
        ssc = setupFunc()
        ssc.checkpoint(checkpointPath)
        return ssc

    @classmethod
    def getActive(cls) -> StreamingContext | None:
        """Return the context that is started and not stopped, if there is one."""
        return StreamingContext._active

    @classmethod
    def getActiveOrCreate(
        cls, checkpointPath: str, setupFunc: Callable[[], StreamingContext]
    ) -> StreamingContext:
        """Return the active context; if there is none, make one as `getOrCreate` does."""
        if not callable(setupFunc):
            raise TypeError("setupFunc should be callable.")  # noqa: TRY003 - pyspark's words
        active = cls.getActive()
        if active is not None:
            return active
        return setupFunc() if checkpointPath is None else cls.getOrCreate(checkpointPath, setupFunc)

    @property
    def sparkContext(self) -> SparkContext:
        """The SparkContext that runs the batches."""
        return self._sc

    def start(self) -> None:
        """Start to plan and to run batches.

        Raises:
            DSTREAM_STATE: It was stopped before, or another context runs.
            DSTREAM_NO_OUTPUT: Nothing would be done.
            HOME_LOCKED: Another driver runs in the checkpoint directory.
        """
        from pyspark.sql import SparkSession

        from millstream.spark.session import share_python

        if self._live is not None and not self._is_stopped:
            _LOG.warning("StreamingContext has already been started")
            return
        spark = SparkSession.builder.getOrCreate()
        share_python(spark)
        with self._changing:
            self._check_alone()
            self._live = self._start_beside(spark, "dstream")
            StreamingContext._active = self

    def _open_alone(self, now_ms: int) -> ProgramRun:
        """Become the active context of this process, without a clock."""
        with self._changing:
            self._check_alone()
            run = self._open(now_ms)
            StreamingContext._active = self
            return run

    def _start_beside(self, spark: SparkSession, name: str) -> LiveRun:
        """Start beside other programs of this process, under a name."""
        run = self._open(int(time.time() * 1000))
        try:
            return LiveRun(run, spark, name)
        except BaseException:
            self._run = None
            run.close()
            raise

    def _open(self, now_ms: int) -> ProgramRun:
        """Take the home and open the sources."""
        self._check_startable()
        self._run = ProgramRun(self._sc, self._program, StreamHome(self._directory), now_ms)
        return self._run

    def awaitTermination(self, timeout: int | None = None) -> None:
        """Wait for the end.

        Raises:
            MillstreamError: A batch failed.
        """
        self._await(timeout)

    def awaitTerminationOrTimeout(self, timeout: int) -> bool:
        """Wait for the end, or for some seconds; return whether the end has come.

        Raises:
            MillstreamError: A batch failed.
        """
        return self._await(timeout)

    def stop(self, stopSparkContext: bool = True, stopGraceFully: bool = False) -> None:
        """Stop; gracefully, when all that was received is in a batch that has run.

        A batch that is stopped while it runs is run again at the next start.
        """
        with self._changing:
            was_stopped, self._is_stopped = self._is_stopped, True
        if not was_stopped and self._live is not None:
            self._live.stop(gracefully=stopGraceFully)
        elif not was_stopped and self._run is not None:
            self._run.close()
        if StreamingContext._active is self:
            StreamingContext._active = None
        if stopSparkContext:
            self._sc.stop()

    def remember(self, duration: int) -> None:
        """Keep the RDDs of every stream for so many seconds, for `slice`."""
        self._remembered_ms = int(duration * 1000)

    def checkpoint(self, directory: str) -> None:
        """Keep the journal of batches, the state and what was received in a folder.

        Raises:
            HOME_UNUSABLE: It is not a folder of this machine.
        """
        self._check_not_started("checkpoint")
        self._directory = local_folder(directory)

    def socketTextStream(
        self,
        hostname: str,
        port: int,
        storageLevel: StorageLevel = StorageLevel.MEMORY_AND_DISK_2,  # noqa: ARG002
    ) -> DStream[str]:
        """Receive lines from a TCP server; they are on disk before a batch has them."""
        number = len(self._sources)
        receiver = ReceivedSource(Socket(hostname, port), f"socket {hostname}:{port}", number)
        return self._add_source("socketTextStream", receiver)

    def textFileStream(self, directory: str) -> DStream[str]:
        """Read the lines of text files that appear in a folder."""

        def read(context: SparkContext, files: str) -> RDD[Any]:
            return context.textFile(files, 1)

        folder = FolderSource.of("textFileStream", directory, read)
        return self._add_source("textFileStream", folder)

    def binaryRecordsStream(self, directory: str, recordLength: int) -> DStream[bytes]:
        """Read records of fixed length from files that appear in a folder."""

        def read(context: SparkContext, files: str) -> RDD[Any]:
            return context.binaryRecords(files, recordLength)

        folder = FolderSource.of("binaryRecordsStream", directory, read)
        return self._add_source("binaryRecordsStream", folder)

    def queueStream(
        self,
        rdds: list[Any],
        oneAtATime: bool = True,
        default: Any = None,
    ) -> DStream[Any]:
        """Read RDDs or lists from a queue: in each batch one of them, or all that are left.

        What is added to the queue later is not noticed. A program that continues in its checkpoint
        directory continues in the queue, too.
        """
        queue = tuple(self._as_rdd(each) for each in rdds)
        last = None if default is None else self._as_rdd(default)
        return self._add_source("queueStream", QueueSource(queue, oneAtATime, last))

    def dataFrameStream(self, frame: DataFrame) -> DStream[Row]:
        """Read the rows of a streaming DataFrame: of any source that Spark or Millstream reads.

        A query of its own stores them in the home; what it has stored belongs to the next batch.
        """
        return self._add_source("dataFrameStream", FrameSource(frame))

    def transform(
        self, dstreams: list[DStream[Any]], transformFunc: Callable[..., Any]
    ) -> DStream[Any]:
        """Apply a function to the list of the RDDs of several streams."""
        self._check_not_started("transform")
        parents = tuple(each._node for each in dstreams)
        self._check_together("transform", parents)
        return DStream(
            TransformNode(
                parents,
                parents[0].slide_ms,
                here(),
                lambda _, *rdds: transformFunc(list(rdds)),
                missing="refuse",
            ),
            self,
        )

    def union(self, *dstreams: DStream[Any]) -> DStream[Any]:
        """Put the elements of several streams together.

        Raises:
            DSTREAM_ARGUMENT: There is none, or their RDDs are not made at the same times.
        """
        self._check_not_started("union")
        parents = tuple(each._node for each in dstreams)
        self._check_together("union", parents)
        if len(dstreams) == 1:
            return dstreams[0]
        node = TransformNode(
            parents,
            parents[0].slide_ms,
            here(),
            lambda _, *rdds: self._sc.union(list(rdds)),
            missing="refuse",
        )
        return DStream(node, self)

    def guarantees(self) -> list[str]:
        """Say of each output how often it is done for a batch, whatever fails."""
        is_durable = self._directory is not None
        return [f"{o.name} at {o.at}: {o.guarantee(is_durable=is_durable)}" for o in self._outputs]

    def addStreamingListener(self, streamingListener: StreamingListener) -> None:
        """Call a listener on what happens."""
        self._listeners.append(streamingListener)

    # What streams ask of their context.

    def _add_source(self, operation: str, source: BatchSource) -> DStream[Any]:
        self._check_not_started(operation)
        node = SourceNode((), self._interval_ms, here(), source)
        self._sources.append(node)
        return DStream(node, self)

    def _add_output(
        self,
        node: Node,
        action: Callable[..., Any] | StoreOutput,
        name: str,
        at: Location | None = None,
    ) -> None:
        self._check_not_started(name)
        self._outputs.append(ProgramOutput(node, action, name, at or here()))

    def _next_state(self) -> int:
        self._states += 1
        return self._states - 1

    def _initial(self, pairs: RDD[Any] | Iterable[Any] | None) -> RDD[Any] | None:
        if pairs is None or isinstance(pairs, RDD):
            return pairs
        return self._sc.parallelize(pairs)

    def _persist(self, node: Node, level: StorageLevel) -> None:
        self._check_not_started("persist")
        self._levels[node] = level

    def _keep_for_window(self, node: Node) -> None:
        self._levels.setdefault(node, StorageLevel.MEMORY_ONLY)

    def _slice(self, node: Node, begin_ms: int, end_ms: int) -> list[RDD[Any]]:
        if self._run is None:
            raise self._refusal("slice", "has not been started")
        return self._run.computation.slice(node, begin_ms, end_ms)

    def _check_not_started(self, operation: str) -> None:
        if self._run is not None or self._is_stopped:
            raise self._refusal(operation, "was stopped" if self._is_stopped else "is started")

    def _check_startable(self) -> None:
        if self._is_stopped:
            raise self._refusal("start", "has already been stopped")
        self._check_context("start")
        if not self._outputs:
            raise as_of_java(fault("DSTREAM_NO_OUTPUT", at=here()))

    def _check_alone(self) -> None:
        active = StreamingContext._active
        if active is not None and active is not self:
            other = fault(
                "DSTREAM_STATE",
                at=here(),
                operation="start",
                why="only one StreamingContext may be started in this process",
                use="stop the other one first: StreamingContext.getActive().stop(False)",
            )
            raise as_of_java(other)

    def _check_context(self, operation: str) -> None:
        if self._sc._jsc is None:
            raise fault(
                "DSTREAM_STATE",
                at=here(),
                operation=operation,
                why="the SparkContext is stopped",
                use="make another SparkContext, and the StreamingContext of it",
            )

    def _check_together(self, operation: str, parents: tuple[Node, ...]) -> None:
        if not parents:
            why, use = f"should have at least one DStream to {operation}", "give it one"
        elif len({node.slide_ms for node in parents}) > 1:
            why, use = "All DStreams should have same slide duration", "give them the same slide"
        else:
            return
        refusal = fault("DSTREAM_ARGUMENT", at=here(), operation=operation, why=why, use=use)
        raise as_of_java(refusal) if operation == "transform" else refusal

    def _refusal(self, operation: str, state: str) -> MillstreamError:
        refusal = fault(
            "DSTREAM_STATE",
            at=here(),
            operation=operation,
            why=f"the StreamingContext {state}",
            use="declare inputs, operations and outputs first, then start, once",
        )
        return as_of_java(refusal)

    @property
    def _program(self) -> StreamProgram:
        nodes = nodes_of([output.node for output in self._outputs])
        return StreamProgram(
            self._interval_ms,
            tuple(self._sources),
            tuple(self._outputs),
            tuple(f"{n.kind} {n.number}" for n in nodes if isinstance(n, StateNode)),
            self._remembered_ms,
            self._levels,
            self._listeners,
        )

    def _as_rdd(self, given: Any) -> RDD[Any]:
        return given if isinstance(given, RDD) else self._sc.parallelize(given)

    def _await(self, timeout: float | None) -> bool:
        if self._live is None:
            time.sleep(0 if timeout is None else timeout)
            return self._is_stopped
        return self._live.wait(timeout)
