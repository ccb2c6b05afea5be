"""Rows handed over by the program itself, for tests and notebooks."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from millstream.model.codec import Codec
from millstream.model.record import RecordOptions
from millstream.systems.record_source import FORMATS, format_fault, record_faults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError


@dataclass(frozen=True, slots=True)
class Memory(RecordOptions):
    """Rows added with `add`, one batch per call.

    They are kept in the home once the app runs, so that a restart finds them again.
    """

    schema: str | StructType
    format: str = "json"
    """Of the records that are added as text; a row is added as JSON."""
    _waiting: list[str] = field(default_factory=list, compare=False, repr=False)
    _places: list[Path] = field(default_factory=list, compare=False, repr=False)

    @property
    def codec(self) -> Codec:
        """Rows travel as JSON, unless they are added as text of another format."""
        decoded = cast("Literal['json', 'csv', 'text', 'logfmt']", self.format)
        return Codec(decoded, number_lines=True, record=self.record)

    def add(self, *rows: dict[str, Any] | str) -> None:
        """Add rows as one batch; a text is taken as the raw record, right or wrong."""
        lines = [row if isinstance(row, str) else json.dumps(row, default=_to_text) for row in rows]
        self._waiting.append("".join(line + "\n" for line in lines))
        if self._places:
            self._hand_over(self._places[-1])

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """Fields that cannot become columns."""
        if self.format not in FORMATS:
            yield format_fault(f"source {source!r}", self.format, FORMATS, at)
        yield from record_faults(self, self.schema, source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Always within reach."""

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open what was added, and what will be, as a stream."""
        from pyspark.sql import functions as F

        place.mkdir(parents=True, exist_ok=True)
        self._places.append(place)
        self._hand_over(place)
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(place))
        return lines.select(
            "value",
            F.col("_metadata.file_name").alias("_origin"),
            F.lit(None).cast("long").alias("_position"),
        )

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:
        """Give what was added, whether an app has taken it or not."""
        taken = sorted(self._places[-1].glob("*.json")) if self._places else []
        texts = [(file.name, file.read_text()) for file in taken]
        texts += [(f"{len(taken) + n:08d}.json", text) for n, text in enumerate(self._waiting)]
        lines = [(line, name, None) for name, text in texts for line in text.split("\n")[:-1]]
        schema = "value STRING, _origin STRING, _position BIGINT"
        return spark.createDataFrame(lines[:rows], schema)

    def _hand_over(self, place: Path) -> None:
        while self._waiting:
            number = sum(1 for _ in place.glob("*.json"))
            temporary = place / ".next"
            temporary.write_text(self._waiting[0])
            # Spark takes files by age; two of one instant would have no order.
            os.utime(temporary, (0, 1 + number))
            temporary.replace(place / f"{number:08d}.json")
            self._waiting.pop(0)


def _to_text(value: object) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
