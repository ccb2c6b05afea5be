"""A program that runs: batches are planned on the grid of the interval, and run one by one."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from millstream.crash import reach
from millstream.dstream.computation import Computation
from millstream.dstream.events import Events, EventValue
from millstream.dstream.home import Journal
from millstream.dstream.java_error import as_of_java
from millstream.dstream.node import batch_time
from millstream.dstream.program import OutputError
from millstream.dstream.sources import Settling
from millstream.dstream.store import OpenStore, StoreOutput
from millstream.errors import MillstreamError, fault

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark import SparkContext

    from millstream.dstream.home import Planned, StreamHome
    from millstream.dstream.node import SourceNode
    from millstream.dstream.program import ProgramOutput, StreamProgram
    from millstream.dstream.sources import OpenSource

_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", re.MULTILINE)


class ProgramRun:
    """The batches of a program: each is planned, durably, and then run, until it is done."""

    def __init__(
        self, context: SparkContext, program: StreamProgram, home: StreamHome, now_ms: int
    ) -> None:
        self._program, self._home = program, home
        interval_ms = program.interval_ms
        with ExitStack() as opened:
            opened.callback(home.close)
            self._zero_ms = home.begin(now_ms // interval_ms * interval_ms, program.identity)
            self.journal = Journal(home)
            self.events = Events(program.listeners)
            self._sources: dict[SourceNode, OpenSource] = {}
            planned = [*self.journal.batches.values()]
            for number, node in enumerate(program.sources):
                parts = [each.parts[number] for each in planned]
                source = node.source.open(context, home.input(number), parts, self.events)
                opened.callback(source.close)
                self._sources[node] = source
            self._computation = Computation(
                context,
                [*program.sources, *(output.node for output in program.outputs)],
                home,
                self.journal,
                self._zero_ms,
                self._sources,
                remembered_ms=program.remembered_ms,
                levels=program.levels,
            )
            opened.callback(self._computation.close)
            self._stores: dict[int, OpenStore] = {}
            for number, output in enumerate(program.outputs):
                if isinstance(output.action, StoreOutput):
                    store = OpenStore(output.action, home, number, output.at)
                    opened.callback(store.close)
                    self._stores[number] = store
            self.events.call("onStreamingStarted", time=now_ms)
            self._opened = opened.pop_all()

    @property
    def checkpoint(self) -> Path:
        """Where Spark keeps the progress of the query that runs the batches."""
        return self._home.checkpoint

    @property
    def computation(self) -> Computation:
        """The RDDs of its batches."""
        return self._computation

    def next_ms(self, after_ms: int) -> int:
        """Return the first time of the grid after another, and after the last planned batch."""
        last = self.journal.last
        after_ms = max(after_ms, last.ms if last else self._zero_ms)
        interval_ms = self._program.interval_ms
        return self._zero_ms + ((after_ms - self._zero_ms) // interval_ms + 1) * interval_ms

    def catch_up(self, now_ms: int) -> None:
        """Plan the ends of longer slides that nobody planned, of windows that have batches."""
        last = self.journal.last
        if last is None:
            return
        slides_ms = {s for s in self._computation.slides_ms if s > self._program.interval_ms}
        until_ms = min(now_ms, last.ms + self._computation.longest_ms - 1)
        for ms in range(last.ms, until_ms + 1, self._program.interval_ms):
            if ms > last.ms and any((ms - self._zero_ms) % slide == 0 for slide in slides_ms):
                self.plan(ms)

    def settle(self) -> None:
        """Wait until sources that run queries of their own have stored all there is."""
        for source in self._sources.values():
            if isinstance(source, Settling):
                source.settle()

    def plan(self, ms: int) -> Planned:
        """Plan a batch of what has arrived: from now on its time and its rows are fixed."""
        return self.plan_parts(ms, [source.plan() for source in self._sources.values()])

    def plan_parts(self, ms: int, parts: Sequence[Any]) -> Planned:
        """Plan a batch of one part of each source."""
        self._home.lease.hold()
        planned = self.journal.add(ms, parts)
        reach("tick_planned", self._home.path, "", planned.number)
        self.events.call("onBatchSubmitted", batchInfo=self._info(planned))
        return planned

    def run_next(self) -> None:
        """Run the first batch that is planned and not done.

        Raises:
            DSTREAM_RAISED: A function of the program raised.
        """
        planned = self.journal.waiting[0]
        started = self._info(planned).with_fields(processingStartTime=_now_ms())
        self.events.call("onBatchStarted", batchInfo=started)
        outputs = {
            number: self._run_output(number, output, planned)
            for number, output in enumerate(self._program.outputs)
        }
        self._home.lease.hold()
        self.journal.finish(planned)
        self.events.call("onBatchCompleted", batchInfo=_completed(started, outputs))
        self._computation.forget(planned.ms)

    def stop_receiving(self) -> None:
        """Close the sources; what they have received can still be planned."""
        for source in self._sources.values():
            source.close()

    def close(self) -> None:
        """Release everything, whatever fails meanwhile."""
        self._opened.close()

    def _run_output(self, number: int, output: ProgramOutput, planned: Planned) -> EventValue:
        began = EventValue(
            batchTime=EventValue(milliseconds=planned.ms),
            id=number,
            name=output.name,
            description=f"{output.name} at {output.at}",
            startTime=_now_ms(),
            endTime=None,
            failureReason=None,
        )
        self.events.call("onOutputOperationStarted", outputOperationInfo=began)
        try:
            self._act(number, output, planned)
        except Exception as error:
            ended = began.with_fields(endTime=_now_ms(), failureReason=str(error))
            self.events.call("onOutputOperationCompleted", outputOperationInfo=ended)
            if isinstance(error, MillstreamError):
                raise
            if isinstance(error, OutputError) and error.__cause__ is not None:
                raise error.__cause__ from None
            raised = fault(
                "DSTREAM_RAISED",
                at=output.at,
                operation=output.name,
                time=batch_time(planned.ms),
                cause=_cause(error),
            )
            raise as_of_java(raised) from error
        reach("output_run", self._home.path, str(number), planned.number)
        ended = began.with_fields(endTime=_now_ms())
        self.events.call("onOutputOperationCompleted", outputOperationInfo=ended)
        return ended

    def _act(self, number: int, output: ProgramOutput, planned: Planned) -> None:
        rdd = self._computation.rdd(output.node, planned.ms)
        if rdd is None:
            return
        if store := self._stores.get(number):
            store.write(planned, rdd)
        elif not isinstance(output.action, StoreOutput):
            output.action(batch_time(planned.ms), rdd)

    def _info(self, planned: Planned) -> EventValue:
        of_sources = {
            number: EventValue(inputStreamId=number, numRecords=source.rows(part), metadata={},
                               metadataDescription=None)
            for number, (source, part) in enumerate(
                zip(self._sources.values(), planned.parts, strict=True)
            )
        }  # fmt: skip
        return EventValue(
            batchTime=EventValue(milliseconds=planned.ms),
            streamIdToInputInfo=of_sources,
            submissionTime=_now_ms(),
            processingStartTime=-1,
            processingEndTime=-1,
            schedulingDelay=-1,
            processingDelay=-1,
            totalDelay=-1,
            numRecords=sum(each.numRecords() for each in of_sources.values()),
            outputOperationInfos={},
        )


class LiveRun:
    """Batches by the clock of the machine, run by one query of Structured Streaming.

    A thread plans a batch at each time of the grid, however long the batch before takes. Each
    batch of the query waits for the next planned one and runs it.
    """

    def __init__(self, run: ProgramRun, spark: Any, name: str) -> None:
        self._run = run
        self._changed = threading.Condition()
        self._is_planning, self._is_stopping = True, False
        self._ended = threading.Event()
        self._runner: threading.Thread | None = None
        self.error: BaseException | None = None
        self._planner = threading.Thread(target=self._plan_all, daemon=True)
        ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        writer = ticks.writeStream.option("checkpointLocation", str(run.checkpoint))
        self._query = writer.queryName(name).foreachBatch(self._run_one).start()
        self._planner.start()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end; return whether it has come.

        Raises:
            MillstreamError: A batch failed.
        """
        ended = self._ended.wait(seconds)
        if self.error is not None:
            raise self.error
        return ended

    def stop(self, *, gracefully: bool) -> None:
        """Stop; gracefully, when all that was received is in a batch that has run."""
        # A function of a batch or a listener may call this.
        is_own_thread = threading.current_thread() in (self._runner, self._planner)
        if gracefully and self.error is None and not is_own_thread:
            self._run.stop_receiving()
            last = self._run.journal.last
            self._wait_for(lambda: self._run.journal.last != last)
            self._is_planning = False
            self._wait_for(lambda: not self._run.journal.waiting)
        with self._changed:
            self._is_planning, self._is_stopping = False, True
            self._changed.notify_all()
        if is_own_thread:
            # The query can only end when its batch does, and the planner when its plan is made.
            threading.Thread(target=self._end, daemon=True).start()
        else:
            self._end()

    def _end(self) -> None:
        try:
            self._planner.join()
            self._query.stop()
        finally:
            try:
                self._run.close()
            finally:
                self._ended.set()

    def _wait_for(self, condition: Any) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self.error is not None)

    def _plan_all(self) -> None:
        try:
            now_ms = _now_ms()
            with self._changed:
                self._run.catch_up(now_ms)
                self._changed.notify_all()
            # From now on every time has a batch, however late it is planned.
            ms = self._run.next_ms(now_ms)
            while self._is_planning:
                with self._changed:
                    self._changed.wait_for(
                        lambda: not self._is_planning, max(0.0, ms / 1000 - time.time())
                    )
                    if self._is_planning and _now_ms() >= ms:
                        self._check_query()
                        self._run.plan(ms)
                        ms = self._run.next_ms(ms)
                        self._changed.notify_all()
        except BaseException as error:
            self._fail(error)

    def _check_query(self) -> None:
        if not self._query.isActive:
            raise self._query.exception() or fault(
                "DSTREAM_STATE",
                operation="a batch",
                why="the query that runs the batches was stopped",
                use="stop the program with ssc.stop(), and start it again in its home",
            )

    def _run_one(self, _: Any, __: int) -> None:
        self._runner = threading.current_thread()
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping or self._run.journal.waiting)
        if self._is_stopping:
            return
        try:
            self._run.run_next()
        except BaseException as error:
            # Stopped within the batch, which is not done. The tick of this query has no rows.
            if self._is_stopping:
                return
            self._fail(error)
            # Spark searches the whole trace for patterns, and a long one overflows its stack.
            raise RuntimeError(type(error).__name__) from None
        with self._changed:
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = self.error or error
            self._is_planning = False
            self._changed.notify_all()
        self._ended.set()


def _completed(started: EventValue, outputs: dict[int, EventValue]) -> EventValue:
    now_ms = _now_ms()
    begun_ms, submitted_ms = started.processingStartTime(), started.submissionTime()
    return started.with_fields(
        processingEndTime=now_ms,
        schedulingDelay=begun_ms - submitted_ms,
        processingDelay=now_ms - begun_ms,
        totalDelay=now_ms - submitted_ms,
        outputOperationInfos=outputs,
    )


def _now_ms() -> int:
    return int(time.time() * 1000)


def _cause(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    if java is None:
        return f"{type(error).__name__}: {error}"
    text = ""
    with contextlib.suppress(Exception):
        text = str(java.toString())
    found = _RAISED.search(text)
    return found[1] if found else text.partition("\n")[0]
