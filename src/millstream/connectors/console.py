"""Rows printed where the app runs, for trying things out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from millstream.errors import Location
    from millstream.model.trigger import Trigger


@dataclass(frozen=True, slots=True)
class Console:
    """The output of the driver: the rows of each batch, as a table."""

    rows: int = 20
    """How many rows of a batch are printed."""

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """A batch that is retried is printed again."""
        return "at least once"

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Always within reach."""

    def columns(self) -> tuple[str, ...]:
        """Any columns will do."""
        return ()

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Give Spark's writer to the console."""
        return frame.writeStream.format("console").options(numRows=self.rows, truncate=False)
