"""Spark's counter: so many rows a second, for trying things out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from millstream.checkpoint.checksum import write_sealed
from millstream.errors import fault
from millstream.model.codec import Codec
from millstream.model.duration import to_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.errors import Location, MillstreamError


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows `timestamp, value` at a steady rate."""

    rows_per_second: int = 1
    head_start: timedelta = timedelta(seconds=10)
    """How long before the first run the first row was due; unused if the source is live."""

    row_wise: ClassVar[tuple[str, ...]] = ("continuous",)

    @property
    def schema(self) -> str:
        """What Spark's rate source gives."""
        return "timestamp TIMESTAMP, value BIGINT"

    @property
    def codec(self) -> Codec:
        """Rows are typed already."""
        return Codec("rows")

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A rate that is not positive."""
        if self.rows_per_second < 1:
            yield fault(
                "SHARE_REFUSED",
                at=at,
                source=source,
                option="rows_per_second",
                value=self.rows_per_second,
                expected="1 or more",
            )
        yield from head_start_faults(self.head_start, source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Always within reach."""

    def begin(self, checkpoint: Path) -> None:
        """Let the counter have begun a while ago."""
        begin_earlier(checkpoint, self.head_start)

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the counter as a stream."""
        return counter(spark, self.rows_per_second)

    def tasks(self, spark: SparkSession) -> int:
        """Count what Spark makes of it: a task for each slot."""
        return spark.sparkContext.defaultParallelism

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:
        """Give the rows of a counter that began so long ago."""
        return counted(spark, self.rows_per_second, rows)


def head_start_faults(
    head_start: timedelta, source: str, at: Location
) -> Iterator[MillstreamError]:
    """A head start that is negative."""
    if head_start < timedelta():
        yield fault(
            "SHARE_REFUSED",
            at=at,
            source=source,
            option="head_start",
            value=to_text(head_start),
            expected="a length of time from 0",
        )


def begin_earlier(checkpoint: Path, head_start: timedelta) -> None:
    """Write into a new checkpoint when its counter began.

    Spark's own begins when it is first read: then no row is due, and a run with `once` has none.
    """
    began_ms = round((time.time() - head_start.total_seconds()) * 1000)
    write_sealed(checkpoint / "sources" / "0" / "0", f"v1\n{began_ms}")


def counter(spark: SparkSession, rows_per_second: int) -> DataFrame:
    """Count rows by the clock; the same offsets give the same rows, whenever they are read."""
    from pyspark.sql import functions as F

    rows = spark.readStream.format("rate").option("rowsPerSecond", rows_per_second).load()
    return rows.select("*", F.lit("rate").alias("_origin"), F.col("value").alias("_position"))


def counted(spark: SparkSession, rows_per_second: int, rows: int) -> DataFrame:
    """Give the first rows of a counter, the last of them due now."""
    from pyspark.sql import functions as F

    began_ms = round((time.time() - rows / rows_per_second) * 1000)
    due_ms = F.round(F.col("id") * 1000 / rows_per_second).cast("long") + began_ms
    number = F.col("id")
    return spark.range(0, rows, 1, 1).select(
        F.timestamp_millis(due_ms).alias("timestamp"),
        number.alias("value"),
        F.lit("rate").alias("_origin"),
        number.alias("_position"),
    )
