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
    from collections.abc import Iterable, Iterator

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

    def show(self, batch: int, parts: Iterable[Any]) -> None:
        """Print the first rows of Arrow tables as Spark prints them."""
        rows: list[dict[str, Any]] = []
        for part in parts:
            rows += part.slice(0, self.rows + 1 - len(rows)).to_pylist()
        line = "-" * 43
        print(line, f"Batch: {batch}", line, *_drawn(rows, self.rows), sep="\n", file=sys.stderr)  # noqa: T201 - that is the sink

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Give Spark's writer to the console."""
        jvm: Any = frame.sparkSession.sparkContext._jvm
        layout = jvm.java.lang.System.getProperty("log4j2.configurationFile")
        if layout:
            _echo(Path(layout).with_name("spark.log"))
        return frame.writeStream.format("console").options(numRows=self.rows, truncate=False)


def _drawn(rows: list[dict[str, Any]], most: int) -> Iterator[str]:
    r"""Draw rows as a table.

    >>> print(*_drawn([{"n": 1}, {"n": None}], 1), sep="\n")
    +---+
    |n  |
    +---+
    |1  |
    +---+
    only showing top 1 row
    """
    names = list(rows[0]) if rows else []
    cells = [[_cell(row[name]) for name in names] for row in rows[:most]]
    widths = [max(3, *map(len, column)) for column in zip(names, *cells, strict=True)]
    rule = f"+{'+'.join('-' * width for width in widths)}+"
    lines = ["|".join(map(str.ljust, line, widths)) for line in (names, *cells)]
    yield from (rule, f"|{lines[0]}|", rule, *(f"|{line}|" for line in lines[1:]))
    if cells:
        yield rule
    if len(rows) > most:
        yield f"only showing top {most} row{'' if most == 1 else 's'}"


def _cell(value: Any) -> str:
    return "NULL" if value is None else str(value)


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
