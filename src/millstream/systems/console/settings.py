"""Rows printed where the app runs, for trying things out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.systems.console.sink import drawn, echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger


@dataclass(frozen=True, slots=True)
class Console:
    """The standard error of the driver: the rows of each batch, as a table."""

    rows: int = 20
    """How many rows of a batch are printed."""

    row_wise: ClassVar[tuple[str, ...]] = ("realtime", "continuous")

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """A batch that is retried is printed again."""
        return "at least once"

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Always within reach."""

    def sink_faults(self, serve: str, at: Location) -> Iterator[MillstreamError]:  # noqa: ARG002
        """Nothing can be wrong with the settings."""
        yield from ()

    def columns(self) -> tuple[str, ...]:
        """Any columns will do."""
        return ()

    def show(self, batch: int, parts: Iterable[Any]) -> None:
        """Print the first rows of Arrow tables as Spark prints them."""
        rows: list[dict[str, Any]] = []
        for part in parts:
            rows += part.slice(0, self.rows + 1 - len(rows)).to_pylist()
        line = "-" * 43
        print(line, f"Batch: {batch}", line, *drawn(rows, self.rows), sep="\n", file=sys.stderr)  # noqa: T201 - that is the sink

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Give Spark's writer to the console."""
        jvm: Any = frame.sparkSession.sparkContext._jvm
        layout = jvm.java.lang.System.getProperty("log4j2.configurationFile")
        if layout:
            echo(Path(layout).with_name("spark.log"))
        return frame.writeStream.format("console").options(numRows=self.rows, truncate=False)
