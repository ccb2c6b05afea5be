"""Rows printed where the app runs, for trying things out."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger


_PRINTED = re.compile(r"-{43}|Batch: \d+|[+|].*|only showing top .*")
"""What Spark's console sink prints."""
_LOOK_EVERY_S = 0.2


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

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Give Spark's writer to the console."""
        jvm: Any = frame.sparkSession.sparkContext._jvm
        layout = jvm.java.lang.System.getProperty("log4j2.configurationFile")
        if layout:
            _echo(Path(layout).with_name("spark.log"))
        return frame.writeStream.format("console").options(numRows=self.rows, truncate=False)


class Echo:
    """Finds in the log of a JVM, where all goes that it prints, what the console sink printed.

    The log stays open: when it is renamed, being full, the JVM goes on printing into it.
    """

    def __init__(self, log: BinaryIO) -> None:
        self._log, self._rest = log, b""
        log.seek(0, os.SEEK_END)

    def new(self) -> Iterator[str]:
        """Give the lines since the last look."""
        *whole, self._rest = (self._rest + self._log.read()).split(b"\n")
        lines = (line.decode(errors="replace") for line in whole)
        return (line for line in lines if _PRINTED.fullmatch(line))


@cache
def _echo(log: Path) -> None:
    """Print from now on, in a thread that ends with the driver."""
    echo = Echo(log.open("rb"))

    def work() -> None:
        while True:
            for line in echo.new():
                print(line, file=sys.stderr)  # noqa: T201 - that is the sink
            time.sleep(_LOOK_EVERY_S)

    threading.Thread(target=work, name="console", daemon=True).start()
