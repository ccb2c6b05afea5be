"""Spark's counter: so many rows a second, for trying things out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from millstream.errors import fault
from millstream.model.dataset import Codec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.errors import Location, MillstreamError


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows `timestamp, value` at a steady rate."""

    rows_per_second: int = 1

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

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Always within reach."""

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the counter as a stream."""
        return counter(spark, self.rows_per_second)

    def tasks(self, spark: SparkSession) -> int:
        """Count what Spark makes of it: a task for each slot."""
        return spark.sparkContext.defaultParallelism

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:
        """Give the rows of a counter that began so long ago."""
        return counted(spark, self.rows_per_second, rows)


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
