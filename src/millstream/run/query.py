"""One streaming query: its batches go through the fence into its table."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyspark.errors import PySparkException
from pyspark.sql.streaming.readwriter import DataStreamWriter

from millstream.checkpoint.health import make_ready
from millstream.crash import reach
from millstream.errors import fault
from millstream.lake.fence import Decision, Fence, Logged, on_start
from millstream.model.duration import to_spark
from millstream.serve.stores import Served
from millstream.spark.nodes import answers_at_once
from millstream.spark.watermark import dropped_rows, raise_watermark, without_empty_batches

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    Launch = Callable[[DataStreamWriter], StreamingQuery]

    from millstream.checkpoint import CheckpointLog
    from millstream.lake.delta import Facts
    from millstream.lake.staging import Staged
    from millstream.model.trigger import Trigger
    from millstream.run.references import Renewal

_COMMIT_LOGGED_WITHIN_S = 5.0
_STARTED_WITHIN_S = 30.0
_WAITING = "Waiting"
"""How Spark begins to say that it waits for data, or for the next trigger."""


class Sink(Protocol):
    """A table open for writing: a batch is staged, made durable and committed, or replayed."""

    @property
    def facts(self) -> Facts:
        """What the table holds."""
        ...

    def stage(self, frame: DataFrame, batch: int) -> Staged:
        """Write a batch where no reader looks."""
        ...

    def replay(self, frame: DataFrame) -> str:
        """Compute a batch that the table has already; give its digest."""
        ...

    def commit(self, staged: Staged, batch: int, query_id: str) -> None:
        """Put a staged batch into the table, once."""
        ...


def triggered(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    """Tell Spark when the next batch starts."""
    match trigger.kind:
        case "once":
            return writer.trigger(availableNow=True)
        case "interval" if trigger.interval is not None:
            return writer.trigger(processingTime=to_spark(trigger.interval))
        case "realtime" if trigger.interval is not None:
            timed: Any = writer
            return cast("DataStreamWriter", timed.trigger(realTime=to_spark(trigger.interval)))
        case "continuous" if trigger.interval is not None:
            return writer.trigger(continuous=to_spark(trigger.interval))
    return writer


def spoken_of(progress: Any) -> dict[str, Any]:
    """Give what Spark said of a batch as plain data."""
    return dict(progress.jsonValue() if hasattr(progress, "jsonValue") else progress)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a streaming query runs."""

    output_mode: str
    on_difference: Callable[[int], None]
    """Called with a batch that gave other rows when it was retried."""
    launch: Launch = DataStreamWriter.start
    renewal: Renewal | None = None
    """How it goes on with newer reference data, if it reads any."""
    bound: Callable[[int], int | None] = lambda _: None
    """Up to when the watermark may go after a batch, in milliseconds, whatever its rows say."""
    on_dropped: Callable[[int], None] | None = None
    """What to do if Spark drops so many rows of a batch as late; by default, they are late."""


class StreamRun:
    """A Spark streaming query that writes each batch exactly once."""

    def __init__(
        self, frame: DataFrame, sink: Sink, log: CheckpointLog, options: StreamOptions
    ) -> None:
        self.name, self.renewal = log.path.name, options.renewal
        self._frame, self._sink, self._log, self._options = frame, sink, log, options
        self._query: StreamingQuery | None = None
        self._working = threading.Lock()
        self._stopping, self._is_first = False, True
        self.ends_by_itself = False
        """Whether it takes in what was there when it began, and no more."""
        self._raised: BaseException | None = None
        self._started = threading.Event()

    @property
    def facts(self) -> Facts:
        """What the table holds."""
        return self._sink.facts

    @property
    def is_active(self) -> bool:
        """Whether the query runs."""
        return self._query is not None and bool(self._query.isActive)

    @property
    def is_waiting(self) -> bool:
        """Whether there was nothing to read when it was last looked for."""
        if self._query is None or not self.is_active:
            return False
        status = self._query.status
        is_busy = status["isTriggerActive"] or status["isDataAvailable"]
        return not is_busy and str(status["message"]).startswith(_WAITING)

    @property
    def failure(self) -> BaseException | None:
        """What the query died of, if it did."""
        if self._query is None or self._stopping:
            return None
        return self._raised or self._query.exception()

    @property
    def progress(self) -> dict[str, Any] | None:
        """What Spark said of the last batch."""
        if self._query is None or (last := self._query.lastProgress) is None:
            return None
        return spoken_of(last)

    def start(self, trigger: Trigger) -> None:
        """Start where the checkpoint ends.

        Raises:
            CheckpointDamagedError: The checkpoint is not as Spark wrote it.
            CHECKPOINT_RESET: The table is ahead of the checkpoint.
            TABLE_RESTORED: The checkpoint is ahead of the table.
        """
        self._hold_to_checkpoint()
        if self.renewal is not None:
            self._frame = self.renewal.frame()
        self._raised, self._stopping, self._is_first = None, False, True
        self.ends_by_itself = trigger.kind == "once"
        writer = (
            self._frame.writeStream.queryName(self.name)
            .outputMode(self._options.output_mode)
            .option("checkpointLocation", str(self._log.path))
            .foreachBatch(self._on_batch)
        )
        self._started.clear()
        with self._empty_batches():
            self._query = self._options.launch(triggered(writer, trigger))
        self._started.set()

    def drain(self) -> None:
        """Wait until all that is there now is taken in.

        Raises:
            BaseException: What the query died of.
        """
        assert self._query is not None
        try:
            if self.ends_by_itself:
                self._query.awaitTermination()
            else:
                self._query.processAllAvailable()
        except PySparkException:
            if self._raised is None and not self._stopping:
                raise
        if self._raised is not None:
            raise self._raised

    def between_batches(self, act: Callable[[], None]) -> None:
        """Do something while no batch is under way; nothing if one is."""
        if self._working.acquire(blocking=False):
            try:
                act()
            finally:
                self._working.release()

    def ask_to_stop(self) -> None:
        """Let no further batch begin."""
        self._stopping = True

    def stop(self) -> None:
        """Let the running batch finish, then stop."""
        self.ask_to_stop()
        query = self._query
        if query is None:
            return
        with self._working:
            pass
        until = time.monotonic() + _COMMIT_LOGGED_WITHIN_S
        while (
            query.isActive and self._log.committed < self.facts.batch and time.monotonic() < until
        ):
            time.sleep(0.01)
        query.stop()

    def _empty_batches(self) -> AbstractContextManager[None]:
        """Leave out batches without rows where they have no answer to give."""
        if answers_at_once(self._frame, self._options.output_mode):
            return without_empty_batches(self._frame.sparkSession)
        return nullcontext()

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        with self._working:
            if self._stopping:
                # To return would tell Spark that the batch is done.
                raise fault("BATCH_NOT_BEGUN", batch=batch, query=self.name)
            try:
                self._take(frame, batch)
                self._raise_watermark(batch)
                self._end_if_idle(batch)
            except BaseException as error:
                self._raised = error
                raise

    def _take(self, frame: DataFrame, batch: int) -> None:
        held = self._sink.facts
        if held.batch >= batch:
            if self._sink.replay(frame) != held.digest and held.batch == batch:
                self._options.on_difference(batch)
            return
        if self.renewal is not None:
            self.renewal.begin(batch)
        self._reach("batch_planned", batch)
        staged = self._sink.stage(frame, batch)
        self._hold_to_time()
        self._reach("batch_staged", batch)
        self._log.make_durable(batch)
        self._reach("offsets_durable", batch)
        self._sink.commit(staged, batch, self._log.query_id or "")
        self._reach("sink_commit", batch)

    def _hold_to_time(self) -> None:
        on_dropped = self._options.on_dropped
        if on_dropped is not None and (rows := dropped_rows(self._begun)):
            on_dropped(rows)

    def _raise_watermark(self, batch: int) -> None:
        if (bound := self._options.bound(batch)) is not None:
            raise_watermark(self._begun, bound)

    @property
    def _begun(self) -> StreamingQuery:
        """The query, also for its first batch, which may begin before it is handed over."""
        self._started.wait(_STARTED_WITHIN_S)
        assert self._query is not None
        return self._query

    def _end_if_idle(self, batch: int) -> None:
        """End a run that is to end when for timers that go by the clock Spark never would.

        The first batch says nothing: it may be one that an earlier run has left over.
        """
        is_first, self._is_first = self._is_first, False
        if self.ends_by_itself and not is_first and self._log.brought_nothing(batch):
            self.ask_to_stop()

    def _reach(self, point: str, batch: int) -> None:
        reach(point, self._log.path.parent.parent, self.name, batch)

    def _hold_to_checkpoint(self) -> None:
        make_ready(self.name, self._log.path, self._sink.facts)
        if isinstance(self._sink, Served):
            self._sink.hold_to_checkpoint()
        else:
            hold_to_checkpoint(self.name, self._sink.facts, self._log)


def hold_to_checkpoint(name: str, held: Facts, log: CheckpointLog) -> None:
    """Make sure that a table and the checkpoint of its query tell the same story.

    Raises:
        CHECKPOINT_RESET: The table is ahead of the checkpoint.
        TABLE_RESTORED: The checkpoint is ahead of the table.
    """
    logged, path = Logged(log.query_id or "", log.committed, log.planned), str(log.path)
    fence = Fence("", held.epoch, "", held.query_id, held.batch, held.digest)
    match on_start(fence, logged):
        case Decision.RESTORED:
            raise fault(
                "TABLE_RESTORED",
                table=name,
                held="no batch" if held.batch < 0 else f"batches up to {held.batch}",
                checkpoint=path,
                knows=logged.committed,
            )
        case Decision.AHEAD:
            raise fault(
                "CHECKPOINT_RESET",
                table=name,
                batch=held.batch,
                checkpoint=path,
                known="none" if logged.planned < 0 else f"batches up to {logged.planned}",
            )
