"""A streaming query that Spark itself writes to a sink: a retried batch is sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from millstream.checkpoint.health import make_ready
from millstream.lake.log import Facts
from millstream.observe import Progress
from millstream.run.query import progress_dict, reported_after, triggered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.checkpoint import CheckpointLog
    from millstream.model.dataset import Serve
    from millstream.model.sink import SparkSink
    from millstream.model.trigger import Trigger
    from millstream.run.query import Launch


class ServeRun:
    """A Spark streaming query into one of Spark's own sinks, at least once."""

    def __init__(
        self,
        serve: Serve,
        sink: SparkSink,
        frame: DataFrame,
        log: CheckpointLog,
        launch: Launch = DataStreamWriter.start,
    ) -> None:
        self.name, self._serve = serve.name, serve
        self._writer = sink.writer(frame)
        self._log, self._launch = log, launch
        self._query: StreamingQuery | None = None
        self._stopping = self._ends_by_itself = False
        self._counted = Facts()

    @property
    def facts(self) -> Facts:
        """What was sent since this was opened; the batch is the last one the checkpoint knows."""
        batch = self._log.committed
        for reported in self._query.recentProgress if self._query is not None else ():
            progress = Progress.of(progress_dict(reported))
            if progress.batch > self._counted.batch:
                counts = {"input": progress.input_rows, "written": progress.output_rows}
                self._counted = Facts(batch=progress.batch, totals=self._counted.totals).plus(
                    counts
                )
        return Facts(batch=batch, counts=self._counted.counts, totals=self._counted.totals)

    @property
    def is_active(self) -> bool:
        """Whether the query runs."""
        return self._query is not None and bool(self._query.isActive)

    @property
    def failure(self) -> BaseException | None:
        """What the query died of, if it did."""
        return None if self._query is None or self._stopping else self._query.exception()

    @property
    def commits_facts(self) -> bool:
        """Whether each of its batches is a commit with facts."""
        return False

    @property
    def waiting(self) -> int | None:
        """How many rows it has left to read: Spark knows."""
        return None

    @property
    def is_reported(self) -> bool:
        """Whether Spark reports on each of its batches."""
        return True

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
        """
        make_ready(self.name, self._log.path, Facts())
        self._stopping, self._ends_by_itself = False, trigger.kind == "once"
        writer = self._writer.queryName(self.name).outputMode(self._serve.mode_in(trigger))
        writer = writer.option("checkpointLocation", str(self._log.path))
        self._query = self._launch(triggered(writer, trigger))

    def drain(self) -> None:
        """Wait until all that is there now is sent.

        Raises:
            PySparkException: What the query died of.
        """
        assert self._query is not None
        if self._ends_by_itself:
            self._query.awaitTermination()
        else:
            self._query.processAllAvailable()

    def ask_to_stop(self) -> None:
        """Note that the query is to stop; `stop` cuts the running batch short."""
        self._stopping = True

    def stop(self) -> None:
        """Stop at once; what was sent since the last commit is sent again at the next start."""
        self.ask_to_stop()
        if self._query is not None:
            self._query.stop()
