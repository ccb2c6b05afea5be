"""One streaming query: its batches go through the fence into its table."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyspark.errors import PySparkException
from pyspark.sql.streaming.readwriter import DataStreamWriter

from millstream.checkpoint.health import make_ready
from millstream.crash import reach
from millstream.errors import fault
from millstream.lake.fence import Decision, PendingBatch, check_table, has_batch, on_retry
from millstream.model.duration import to_spark
from millstream.run.batch_size import BatchCost
from millstream.serve.serve_sink import ServeSink
from millstream.spark.nodes import answers_at_once
from millstream.spark.watermark import dropped_rows, raise_watermark, without_empty_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    Launch = Callable[[DataStreamWriter], StreamingQuery]

    from millstream.checkpoint import CheckpointLog
    from millstream.lake.log import Facts
    from millstream.lake.staging import Staged
    from millstream.model.trigger import Trigger
    from millstream.run.admission import Admission
    from millstream.run.file_batches import ReadableFiles
    from millstream.run.references import Renewal

_COMMIT_LOGGED_WITHIN_S = 5.0
_STARTED_WITHIN_S = 30.0
_WAITING = "Waiting"
"""How Spark begins to say that it waits for data, or for the next trigger."""


class BatchSink(Protocol):
    """A table open for writing: a batch is staged, made durable and committed, or replayed."""

    @property
    def facts(self) -> Facts:
        """What the table holds."""
        ...

    def stage(self, frame: DataFrame, batch: int) -> Staged:
        """Write a batch where no reader looks."""
        ...

    def replay(self, frame: DataFrame) -> str:
        """Compute a batch that the table has already; return its digest."""
        ...

    def commit(self, staged: Staged, batch: int, query_id: str) -> None:
        """Put a staged batch into the table, once."""
        ...


def triggered(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    """Set when Spark starts the next batch."""
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


def reported_after(query: StreamingQuery | None, batch: int) -> tuple[dict[str, Any], ...]:
    """Return what Spark has reported on the batches after one, the earliest first."""
    if query is None:
        return ()
    # `recentProgress` of PySpark parses a hundred reports, whatever is wanted of them.
    reports: Any = query._jsq.recentProgress()
    found: list[dict[str, Any]] = []
    for number in reversed(range(len(reports))):
        report = json.loads(reports[number].json())
        if report["batchId"] <= batch:
            break
        found.append(report)
    return tuple(reversed(found))


def progress_dict(progress: Any) -> dict[str, Any]:
    """Return the progress that Spark reported as plain data."""
    return dict(progress.jsonValue() if hasattr(progress, "jsonValue") else progress)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a streaming query runs."""

    output_mode: str
    on_difference: Callable[[int], None]
    """Called with a batch that gave other rows when it was retried."""
    launch: Launch = DataStreamWriter.start
    renewal: Renewal | None = None
    """How it continues with newer reference data, if it reads any."""
    reopened: Callable[[], DataFrame] | None = None
    """Reads its input from where the checkpoint ends now, for a restart; None if it need not."""
    bound: Callable[[int], int | None] = lambda _: None
    """Returns how far the frontiers of the inputs raise the watermark after a batch, in ms."""
    files: ReadableFiles | None = None
    """Which files its batches read, if it reads any that may be unreadable."""
    admission: Admission | None = None
    """What bounds how much each batch reads; None if nothing does."""
    waiting: Callable[[], int | None] = lambda: None
    """Returns how many rows wait to be read, where only we know: those of a receiver."""
    on_dropped: Callable[[int], None] | None = None
    """Called with the number of rows that Spark dropped as late; None accepts that."""
    on_commit: Callable[[Facts], None] = lambda _: None
    """Called with the facts of a batch that is committed."""


class StreamRun:
    """A Spark streaming query that writes each batch exactly once."""

    def __init__(
        self, frame: DataFrame, sink: BatchSink, log: CheckpointLog, options: StreamOptions
    ) -> None:
        self.name, self.renewal, self.files = log.path.name, options.renewal, options.files
        self._frame, self._sink, self._log, self._options = frame, sink, log, options
        self._query: StreamingQuery | None = None
        self._working = threading.Lock()
        self._stopping, self._is_first = False, True
        self.ends_by_itself = False
        """Whether it reads what was there when it started, and then ends."""
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
        """Whether the last poll found nothing to read."""
        if self._query is None or not self.is_active:
            return False
        status = self._query.status
        is_busy = status["isTriggerActive"] or status["isDataAvailable"]
        return not is_busy and str(status["message"]).startswith(_WAITING)

    @property
    def waiting(self) -> int | None:
        """How many rows that a receiver has passed on wait to be read; None if there is none."""
        return self._options.waiting()

    @property
    def failure(self) -> BaseException | None:
        """What the query died of, if it did."""
        if self._query is None or self._stopping:
            return None
        return self._raised or self._query.exception()

    @property
    def commits_facts(self) -> bool:
        """Whether each of its batches is a commit with facts."""
        return True

    @property
    def is_reported(self) -> bool:
        """Whether Spark reports on each of its batches, as it does while it runs."""
        return self.is_active

    @property
    def progress(self) -> dict[str, Any] | None:
        """What Spark reported on the last batch."""
        if self._query is None or (last := self._query.lastProgress) is None:
            return None
        return progress_dict(last)

    def progress_after(self, batch: int) -> tuple[dict[str, Any], ...]:
        """What Spark reported on the batches after one."""
        return reported_after(self._query, batch)

    def start(self, trigger: Trigger) -> None:
        """Start where the checkpoint ends.

        Raises:
            CheckpointDamagedError: The checkpoint is not as Spark wrote it.
            CHECKPOINT_RESET: The table is ahead of the checkpoint.
            TABLE_RESTORED: The checkpoint is ahead of the table.
        """
        self._check_checkpoint()
        if self.renewal is not None and (self.renewal.references.is_used or self._query):
            # A first batch is bounded from where the checkpoint ends, which is elsewhere by now.
            self._frame = self.renewal.frame()
        elif self._options.reopened is not None and self._query:
            self._frame = self._options.reopened()
        if self.files is not None:
            self.files.forget_requested()
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
        """Wait until all that is there now is processed.

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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the running batch finish, and no other begin."""
        with self._working:
            yield

    def before_next_batch(self, act: Callable[[], bool]) -> bool:
        """Wait for the running batch, and do something before the next one begins."""
        with self._working:
            return act()

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
                # If this returned, Spark would log the batch as done.
                raise fault("BATCH_NOT_BEGUN", batch=batch, query=self.name)
            began = time.monotonic()
            try:
                self._process(frame, batch)
                self._raise_watermark(batch)
                self._bound_next(batch, time.monotonic() - began)
                self._end_if_idle(batch)
            except BaseException as error:
                self._raised = error
                raise

    def _process(self, frame: DataFrame, batch: int) -> None:
        held = self._sink.facts.fence
        if has_batch(held, batch):
            again = PendingBatch(held.checkpoint, batch, self._replayed(frame, batch))
            if on_retry(held, again) is Decision.CHANGED:
                self._options.on_difference(batch)
            return
        if self.renewal is not None:
            self.renewal.begin(batch)
        self._reach("batch_planned", batch)
        staged = self._staged(frame, batch)
        self._check_dropped_rows()
        self._reach("batch_staged", batch)
        self._log.make_durable(batch)
        self._reach("offsets_durable", batch)
        self._sink.commit(staged, batch, self._log.query_id or "")
        self._reach("sink_commit", batch)
        self._options.on_commit(self._sink.facts)

    def _replayed(self, frame: DataFrame, batch: int) -> str:
        """Return the digest of a batch that is stored; empty if a file of it is unreadable now."""
        if self.files is None:
            return self._sink.replay(frame)
        try:
            return self._sink.replay(self.files.again(frame, batch))
        except Exception as error:
            if self.files.connector.unreadable(error) is None:
                raise
            return ""

    def _staged(self, frame: DataFrame, batch: int) -> Staged:
        if self.files is None:
            return self._sink.stage(frame, batch)
        frame = self.files.begin(frame, batch)
        try:
            return self._sink.stage(frame, batch)
        except Exception as error:
            readable = self.files.without_unreadable(frame, batch, error)
            if readable is None:
                raise
        return self._sink.stage(readable, batch)

    def _check_dropped_rows(self) -> None:
        on_dropped = self._options.on_dropped
        if on_dropped is not None and (rows := dropped_rows(self._started_query)):
            on_dropped(rows)

    def _raise_watermark(self, batch: int) -> None:
        if (bound := self._options.bound(batch)) is not None:
            raise_watermark(self._started_query, bound)

    def _bound_next(self, batch: int, seconds: float) -> None:
        if (admission := self._options.admission) is not None:
            facts = self._sink.facts
            cost = BatchCost(facts.counts.get("input", 0), facts.rows, seconds)
            admission.after(self._started_query, self._frame.sparkSession, batch, cost)

    @property
    def _started_query(self) -> StreamingQuery:
        """The query, also during its first batch, which may begin before `launch` returns."""
        self._started.wait(_STARTED_WITHIN_S)
        assert self._query is not None
        return self._query

    def _end_if_idle(self, batch: int) -> None:
        """End a run with the trigger `once`: with processing-time timers Spark never ends it.

        The first batch does not count: an earlier run may have left it unfinished.
        """
        is_first, self._is_first = self._is_first, False
        if self.ends_by_itself and not is_first and self._log.brought_nothing(batch):
            self.ask_to_stop()

    def _reach(self, point: str, batch: int) -> None:
        reach(point, self._log.path.parent.parent, self.name, batch)

    def _check_checkpoint(self) -> None:
        make_ready(self.name, self._log.path, self._sink.facts)
        if isinstance(self._sink, ServeSink):
            self._sink.check_against_checkpoint()
        else:
            check_table(self.name, self._sink.facts.fence, self._log.logged, str(self._log.path))
