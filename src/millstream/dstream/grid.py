"""A functional program on rows that are stored: a batch has those of one interval of event time."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from millstream.declare.dataset import described
from millstream.dstream.context import StreamingContext
from millstream.dstream.home import StreamHome
from millstream.dstream.program import OutputError
from millstream.dstream.run import ProgramRun
from millstream.dstream.stream import DStream
from millstream.errors import fault
from millstream.model.duration import parse_duration
from millstream.model.schema import Schema
from millstream.operators.columns import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from millstream.dstream.events import Events
    from millstream.dstream.sources import OpenSource
    from millstream.errors import MillstreamError
    from millstream.model.dataset import FunctionalStream

    Read = Callable[[int, int], RDD[Any]]
    """Returns the rows of an input after one time, up to another, in milliseconds."""
    Write = Callable[[int, RDD[Any]], None]
    """Called with the time of a batch and what the program makes of it."""

_CELL = "_batch"


@dataclass(frozen=True)
class TimedRows:
    """The rows of an input, and their event time."""

    frame: DataFrame
    column: str

    def between(self, after_ms: int, to_ms: int) -> RDD[Any]:
        """Return the rows of an interval, which is open on the left."""
        return self.frame.where(self._is_after(after_ms) & ~self._is_after(to_ms)).rdd

    def span_us(self, to_ms: float) -> tuple[int, int] | None:
        """Return the first and the last time of rows up to a moment; None if there is no row."""
        rows = self.frame if to_ms == math.inf else self.frame.where(~self._is_after(int(to_ms)))
        at = F.unix_micros(quoted(self.column))
        [first, last] = rows.agg(F.min(at), F.max(at)).collect()[0]
        return None if first is None else (first, last)

    def _is_after(self, ms: int) -> Any:
        return quoted(self.column) > F.timestamp_micros(F.lit(ms * 1000))


@dataclass(frozen=True, eq=False)
class IntervalSource:
    """An input whose batches are intervals of event time."""

    read: Read

    def open(
        self,
        context: SparkContext,  # noqa: ARG002
        place: Path,  # noqa: ARG002
        parts: Sequence[Any],  # noqa: ARG002
        events: Events,  # noqa: ARG002
    ) -> OpenSource:
        """Read what the home of the app has."""
        return _OpenIntervals(self.read)


class _OpenIntervals:
    def __init__(self, read: Read) -> None:
        self._read = read

    def plan(self) -> list[int]:
        """Nothing arrives by itself; an interval is named where a batch is planned."""
        return [0, 0]

    def rdd(self, part: Any) -> RDD[Any]:
        return self._read(*part)

    def rows(self, part: Any) -> int:  # noqa: ARG002
        return 0

    def forget(self, part: Any) -> None: ...

    def close(self) -> None: ...


class GridProgram:
    """The program of a functional stream, over inputs that are read by intervals."""

    def __init__(
        self,
        spark: SparkSession,
        stream: FunctionalStream,
        reads: Sequence[Read],
        write: Write,
        end: Callable[[int], None],
    ) -> None:
        """Call the function of the stream.

        Args:
            spark: Runs its batches.
            stream: What is declared.
            reads: Read the inputs.
            write: Called with what it makes of a batch, if it makes an RDD.
            end: Called after it with the time of every batch.

        Raises:
            NOT_A_DSTREAM: It returns something else.
            DSTREAM_ARGUMENT: It has inputs or outputs of its own.
        """
        self.interval_ms = interval_ms(stream)
        self._context, self._inputs = spark.sparkContext, len(reads)
        self._ssc = StreamingContext(self._context, self.interval_ms / 1000)  # type: ignore[arg-type]
        inputs = [self._ssc._add_source(stream.name, IntervalSource(read)) for read in reads]
        made = stream.build(*inputs)
        if not isinstance(made, DStream):
            refused = described(made)
            raise fault("NOT_A_DSTREAM", at=stream.at, stream=stream.name, got=refused)
        if len(self._ssc._sources) > len(inputs):
            why = "it has an input of its own, whose rows no replay would read again"
            use = "declare it as a source of the app, and take it as a parameter"
            raise _refusal(stream, why, use)
        if self._ssc._outputs:
            why = "it has an output of its own, which a replay or `millstream batch` would run too"
            use = "return the stream, and send its rows on with @app.serve or @app.alert"
            raise _refusal(stream, why, use)

        def write_batch(time: datetime, rdd: RDD[Any]) -> None:
            try:
                write(round(time.timestamp() * 1000), rdd)
            except Exception as error:
                raise OutputError from error

        def end_batch(time: datetime, _: RDD[Any]) -> None:
            try:
                end(round(time.timestamp() * 1000))
            except Exception as error:
                raise OutputError from error

        self._ssc._add_output(made._node, write_batch, f"stream {stream.name!r}", stream.at)
        self._ssc._add_output(inputs[0]._node, end_batch, "the end of a batch", stream.at)

    def start(self, zero_ms: int) -> GridRun:
        """Begin after a time, and keep nothing."""
        return self._started(None, zero_ms)

    def resume(self, directory: Path, zero_ms: int, done_ms: int) -> GridRun:
        """Continue in a folder, or begin after a time.

        Args:
            directory: The folder; what it has of later batches than are done is deleted.
            zero_ms: The time before the first batch.
            done_ms: The time of the last batch whose rows are stored.
        """
        run = self._started(directory, zero_ms)
        if run.done_ms is not None and run.done_ms > done_ms:
            # The table is an earlier one than the state is of: all batches run again.
            run.close()
            shutil.rmtree(directory)
            run = self._started(directory, zero_ms)
        return run

    def _started(self, directory: Path | None, zero_ms: int) -> GridRun:
        home = StreamHome(None if directory is None else str(directory))
        run = ProgramRun(self._context, self._ssc._program, home, zero_ms)
        return GridRun(run, self.interval_ms, self._inputs)


class GridRun:
    """Runs the batches of a program in the order of event time."""

    def __init__(self, run: ProgramRun, interval_ms: int, inputs: int) -> None:
        self._run, self._interval_ms, self._inputs = run, interval_ms, inputs

    @property
    def done_ms(self) -> int | None:
        """The time of the last batch that has run; None if none has."""
        journal = self._run.journal
        done = [p.ms for p in journal.batches.values() if p.number <= journal.done]
        return max(done, default=None)

    def step(self, to_ms: int) -> bool:
        """Run the next batch up to a time; return whether there was one.

        Raises:
            DSTREAM_RAISED: A function of the program raised.
        """
        if not self._run.journal.waiting:
            ms = self._run.next_ms(0)
            if ms > to_ms:
                return False
            self._run.plan_parts(ms, [[ms - self._interval_ms, ms]] * self._inputs)
        self._run.run_next()
        return True

    def close(self) -> None:
        """Release the home."""
        self._run.close()


def interval_ms(stream: FunctionalStream) -> int:
    """Return how long a batch is.

    Raises:
        DSTREAM_ARGUMENT: It is no whole number of milliseconds.
    """
    ms = parse_duration(stream.interval).total_seconds() * 1000
    if ms < 1 or ms != int(ms):
        why = f"a batch of {stream.interval!r} is no whole number of milliseconds"
        raise _refusal(stream, why, "give its length, such as interval='1 second'")
    return int(ms)


def _refusal(stream: FunctionalStream, why: str, use: str) -> MillstreamError:
    operation = f"stream {stream.name!r}"
    return fault("DSTREAM_ARGUMENT", at=stream.at, operation=operation, why=why, use=use)


def first_ms(inputs: Sequence[TimedRows], to_ms: float, interval_ms: int) -> int | None:
    """Return the time before the first batch of rows up to a moment; None if there is no row."""
    spans = [span for rows in inputs if (span := rows.span_us(to_ms)) is not None]
    if not spans:
        return None
    first_us = min(first for first, _ in spans)
    return -(-first_us // (interval_ms * 1000)) * interval_ms - interval_ms


def answer(
    spark: SparkSession, stream: FunctionalStream, inputs: Sequence[TimedRows], complete_us: float
) -> DataFrame:
    """Run the program over all rows that are complete, and return what its table then has.

    It is in the memory of the driver.

    Args:
        spark: The session.
        stream: Whose program.
        inputs: The rows of its inputs.
        complete_us: Up to when, in microseconds; infinite: all there are, as a batch.
    """
    schema: Any = spark.createDataFrame([], Schema.parse(stream.schema).to_ddl()).schema
    batches: list[pa.Table] = []

    def write(ms: int, rdd: RDD[Any]) -> None:
        rows = spark.createDataFrame(rdd, schema).toArrow()
        if stream.mode == "complete":
            batches.clear()
        if rows.num_rows:
            batches.append(rows.append_column(_CELL, pa.repeat(pa.scalar(ms), rows.num_rows)))

    program = GridProgram(spark, stream, [rows.between for rows in inputs], write, _pass)
    to_ms = math.inf if complete_us == math.inf else last_ms(complete_us, program.interval_ms)
    if to_ms > -math.inf and (zero_ms := first_ms(inputs, to_ms, program.interval_ms)) is not None:
        _run_all(program, zero_ms, _end_ms(inputs, to_ms, program.interval_ms))
    if not batches:
        return spark.createDataFrame([], schema)
    found = spark.createDataFrame(pa.concat_tables(batches))
    if stream.mode == "update":
        latest = F.max_by(F.struct(*map(quoted, found.columns)), _CELL).alias("latest")
        found = found.groupBy(*map(quoted, stream.key)).agg(latest).select("latest.*")
    return found.select(*(quoted(f.name).cast(f.dataType) for f in schema.fields))


def last_ms(complete_us: float, interval_ms: int) -> float:
    """Return the time of the last batch whose rows are complete.

    >>> last_ms(3_000_001, 1000), last_ms(3_000_000, 1000)
    (3000, 2000)
    """
    if not math.isfinite(complete_us):
        return complete_us
    # A row exactly at the time up to which rows are complete can still come.
    return (math.ceil(complete_us) - 1) // (interval_ms * 1000) * interval_ms


def _pass(ms: int) -> None:
    del ms


def _end_ms(inputs: Sequence[TimedRows], to_ms: float, interval_ms: int) -> int:
    if to_ms < math.inf:
        return int(to_ms)
    last_us = max(span[1] for rows in inputs if (span := rows.span_us(to_ms)) is not None)
    return -(-last_us // (interval_ms * 1000)) * interval_ms


def _run_all(program: GridProgram, zero_ms: int, to_ms: int) -> None:
    run = program.start(zero_ms)
    try:
        while run.step(to_ms):
            continue
    finally:
        run.close()
