"""What sources of JSON, CSV or text records have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from millstream.errors import SchemaError, closest, fault, listed
from millstream.model.codec import Codec
from millstream.model.record import RecordOptions
from millstream.model.schema import Schema
from millstream.model.time_format import EPOCHS, ISO, LETTERS, formats_fault
from millstream.systems.record_fields import (
    TYPED,
    format_of,
    lenient_faults,
    rename_faults,
    rest_faults,
)
from millstream.systems.record_reading import reading_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError

FORMATS = ("json", "csv", "text", "logfmt")


def format_fault(dataset: str, got: str, allowed: Sequence[str], at: Location) -> MillstreamError:
    """Refuse a format that a connector does not know."""
    return fault(
        "FORMAT_REFUSED",
        at=at,
        dataset=dataset,
        got=got,
        nearest=closest(got, allowed),
        allowed=", ".join(allowed),
    )


def record_faults(
    options: RecordOptions, schema: object, source: str, at: Location
) -> Iterator[MillstreamError]:
    """Find columns that no field, or more than one, would become, or whose formats do not fit."""
    try:
        parsed = Schema.parse(schema)
    except SchemaError:
        return
    yield from reading_faults(options, parsed, source, at)
    yield from _time_faults(options, parsed, source, at)
    yield from rest_faults(options, parsed, source, at)
    yield from lenient_faults(options, parsed, source, at)
    yield from rename_faults(options, parsed, source, at)


def _time_faults(
    options: RecordOptions, schema: Schema, source: str, at: Location
) -> Iterator[MillstreamError]:
    """Find formats of what is no time, and those that cannot be read."""
    types = {field.name: field.type for field in schema.fields}
    kind = format_of(options)
    for column in options.formats:
        formats = options.formats_of(column)
        use = f"give {', '.join((*EPOCHS, ISO))}, or a pattern of the letters {LETTERS}"
        why = formats_fault(column, types, formats)
        if kind in TYPED:
            why = f"{kind} has types of its own"
            use = 'leave it out; compute the event time: event_time="timestamp_millis(ms)"'
        elif column not in types:
            use = f"{closest(column, types)}columns are {listed(types)}"
        if why:
            yield fault(
                "FORMATS",
                at=at,
                source=source,
                column=column,
                formats=", ".join(map(repr, formats)),
                why=why,
                use=use,
            )


class RecordSource(RecordOptions):
    """A source of records that are decoded one by one."""

    __slots__ = ()

    format: str
    schema: str | StructType

    @property
    def codec(self) -> Codec:
        """Records are decoded; their position comes with them."""
        decoded = cast("Literal['json', 'csv', 'text', 'logfmt']", self.format)
        return Codec(decoded, record=self.record)

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist."""
        if self.format not in FORMATS:
            yield format_fault(f"source {source!r}", self.format, FORMATS, at)
        yield from record_faults(self, self.schema, source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Do nothing: records come when the app runs."""


class ReceiverSource(RecordSource):
    """A source that receives records, a line each, and keeps them in an inbox until they land."""

    __slots__ = ()

    @property
    def codec(self) -> Codec:
        """Lines are decoded, and counted within their file."""
        return replace(super().codec, number_lines=True)

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open the inbox as a stream."""
        from pyspark.sql import functions as F

        place.mkdir(parents=True, exist_ok=True)
        options = {"maxFileAge": "1000000d", "lineSep": "\n"}
        lines = spark.readStream.format("text").options(**options).load(str(place))
        return lines.select(
            "value",
            F.col("_metadata.file_name").alias("_origin"),
            F.lit(None).cast("long").alias("_position"),
        )
