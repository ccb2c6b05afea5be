"""A streaming query that Spark itself writes to a sink: what is retried arrives again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from millstream.build.build import hold_condition
from millstream.checkpoint.health import make_ready
from millstream.errors import ColumnMissingError, ColumnReservedError, StoreModeError
from millstream.lake.log import Facts
from millstream.model.dataset import DemandingSink, StoreSink, TypedSink
from millstream.observe import Progress
from millstream.run.query import spoken_of, triggered
from millstream.serve.shape import GONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.checkpoint import CheckpointLog
    from millstream.model.dataset import Serve, SparkSink
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
        for said in self._query.recentProgress if self._query is not None else ():
            progress = Progress.of(spoken_of(said))
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
    def progress(self) -> dict[str, Any] | None:
        """What Spark said of the last batch."""
        if self._query is None or (last := self._query.lastProgress) is None:
            return None
        return spoken_of(last)

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
        """Take note that the end is wanted; the batch that runs is cut short by `stop`."""
        self._stopping = True

    def stop(self) -> None:
        """Stop at once; what was sent since the last commit is sent again at the next start."""
        self.ask_to_stop()
        if self._query is not None:
            self._query.stop()


def hold_to_sinks(serve: Serve, frame: DataFrame) -> None:
    """Make sure that an answer has the columns that its sinks need.

    Raises:
        ColumnMissingError: It lacks one.
        ColumnReservedError: The answer has a column Millstream keeps for itself.
        RuleRefusedError: What is to be deleted is not a condition on the answer.
        StoreModeError: A column is of a type that a sink cannot take.
    """
    for option, column in _needed(serve):
        if column not in frame.columns:
            dataset = f"serve {serve.name!r}"
            raise ColumnMissingError(
                option, column, dataset=dataset, columns=frame.columns, at=serve.at
            )
    _hold_types(serve, frame)
    for sink in serve.to:
        if isinstance(sink, StoreSink) and sink.delete_when:
            hold_condition("delete_when", sink.delete_when, serve.name, serve.at, frame)
    for column in frame.columns:
        if column.startswith(GONE):
            raise ColumnReservedError(column, table=serve.name, at=serve.at)


def _hold_types(serve: Serve, frame: DataFrame) -> None:
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    for sink in serve.to:
        for column, allowed in sink.types().items() if isinstance(sink, TypedSink) else ():
            if kinds.get(column, allowed[0]) not in allowed:
                why = f"records of this format are made of {column!r}, which is {kinds[column]}"
                use = f"cast it to {' or '.join(allowed)}, or leave format= out"
                raise StoreModeError("Kafka", serve=serve.name, why=why, use=use, at=serve.at)


def _needed(serve: Serve) -> Iterator[tuple[str, str]]:
    for sink in serve.to:
        if isinstance(sink, DemandingSink):
            yield from (("format" if c == "value" else "key", c) for c in sink.columns())
        if isinstance(sink, StoreSink):
            yield from (("key", column) for column in sink.key)
            if sink.newest_by:
                yield "newest_by", sink.newest_by
