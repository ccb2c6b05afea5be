"""The same queries, answered by Spark: what has no translation."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.errors import fault, listed
from millstream.model.sketch import named_in
from millstream.sql.frontier import COLUMNS, FRONTIER, frontier_rows
from millstream.sql.guard import verified
from millstream.sql.limits import Limits, over_memory, run_interruptibly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millstream.lake.home import Home
    from millstream.sql.answer import Answer

T = TypeVar("T")

_CONFINED = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.runSQLOnFiles": "false",
}
"""What Spark itself can refuse, beside the guard: ${env:HOME}, and paths as tables."""

_ENDED_WITHOUT_MEMORY = 52
"""Spark's exit code after an OutOfMemoryError."""
_ENDS_WITHIN_S = 15.0
_OUT_OF_MEMORY = re.compile(r"OutOfMemory|spark\.driver\.maxResultSize|CANNOT_ACQUIRE_MEMORY")


@dataclass(frozen=True, slots=True)
class SparkAnswer:
    """An answer that Spark computes while it is read."""

    frame: DataFrame

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.frame.columns)

    def batches(self, most: int | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """Read the rows, some at a time; Spark computes no more than `most` are."""
        limited = self.frame.limit(most).toArrow().to_reader() if most is not None else None
        for batch in limited or self.record_batches():
            columns = [column.to_pylist(maps_as_pydicts="strict") for column in batch.columns]
            yield list(zip(*columns, strict=True))

    def record_batches(self) -> pa.RecordBatchReader:
        """Read the rows as Arrow, one part of the answer after the other."""
        import pyarrow as pa

        schema = self.frame.limit(0).toArrow().schema
        # Two columns may have one name, which a function of batches cannot be called with.
        named = self.frame.toDF(*(f"_{number}" for number in range(len(schema))))
        parts = named.mapInArrow(_packed, "packed BINARY").toLocalIterator()
        read = (batch for part in parts for batch in pa.ipc.open_stream(part.packed))
        columns = (batch.columns for batch in read)
        batches = (pa.RecordBatch.from_arrays(each, schema=schema) for each in columns)
        return pa.RecordBatchReader.from_batches(schema, batches)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packed], ["packed"])


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Answers queries over the tables of a home with Spark."""

    spark: SparkSession
    home: Home
    limits: Limits

    @staticmethod
    def open(spark: SparkSession, home: Home, limits: Limits) -> SparkEngine:
        """Open an engine with a session of its own, which reads the tables of the home alone."""
        session = spark.newSession()
        for name, value in _CONFINED.items():
            session.conf.set(name, value)
        return SparkEngine(session, home, limits)

    def run(self, text: str, take: Callable[[Answer], T]) -> T:
        """Run a query; return what `take` makes of its answer.

        Raises:
            SQL_SYNTAX: It cannot be read.
            SQL_NOT_READING: It is not one reading statement.
            SQL_NOT_ALLOWED: It has a part that could do more than read the tables.
            UNKNOWN_TABLE: It names a table that is not there.
            SPARK_REFUSED_SQL: Spark does not answer it.
            SQL_OVER_LIMIT: It takes too long, or too much memory.
        """
        text = verified(text, self.home.tables)
        named = [name for name in self.home.tables if name.lower() in text.lower()]
        register(self.spark, self.home, named)
        if FRONTIER in text.lower():
            register_frontier(self.spark, self.home)
        return run_interruptibly(
            lambda: self._taken(text, take),
            cancel=self.spark.sparkContext.cancelAllJobs,
            limits=self.limits,
        )

    def _taken(self, text: str, take: Callable[[Answer], T]) -> T:
        with translating_errors(self.limits, self.home.tables):
            return take(answer(self.spark, text))


def register(spark: SparkSession, home: Home, names: Iterable[str]) -> None:
    """Register tables of a home with Spark, by their names."""
    for name in names:
        spark.sql(f"DROP TABLE IF EXISTS `{name}`")
        spark.sql(f"CREATE TABLE `{name}` USING delta LOCATION '{home.existing(name)}'")


def register_frontier(spark: SparkSession, home: Home) -> None:
    """Register the table `_frontier` of a home with Spark, as of now."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    spark.createDataFrame(frontier_rows(home), columns).createOrReplaceTempView(FRONTIER)


def answer(spark: SparkSession, text: str) -> SparkAnswer:
    """Answer a query on tables that Spark knows."""
    for function in named_in(text):
        spark.sql(function)
    return SparkAnswer(spark.sql(text.strip().rstrip(";")))


@contextmanager
def translating_errors(limits: Limits, known: Sequence[str]) -> Iterator[None]:
    """Turn what Spark raises into errors of a query.

    Raises:
        SPARK_REFUSED_SQL: Spark does not answer it.
        SQL_OVER_LIMIT: It needs too much memory.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        is_spark = isinstance(error, PySparkException)
        if _OUT_OF_MEMORY.search(str(error)) or (not is_spark and _ended_without_memory()):
            raise over_memory(limits.memory_mb) from error
        if not is_spark:
            raise
        cause = str(error).strip().splitlines()[0]
        raise fault("SPARK_REFUSED_SQL", cause=cause, known=listed(known)) from error


def _ended_without_memory() -> bool:
    """Return whether Spark's JVM has ended for want of memory, a moment after an error."""
    from pyspark import SparkContext

    from millstream.spark.session import last_logged

    jvm = getattr(SparkContext._gateway, "proc", None)
    try:
        code = int(jvm.wait(timeout=_ENDS_WITHIN_S)) if jvm else 0
    except subprocess.TimeoutExpired:
        return False
    # Arrow has an error of its own for want of memory, of which only the log knows.
    return code == _ENDED_WITHOUT_MEMORY or (
        code > 0 and bool(_OUT_OF_MEMORY.search(last_logged()))
    )
