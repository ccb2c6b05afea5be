"""Scripted rows: encoded in the format of their source, and dated by the clock of the script."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from millstream.errors import closest, fault, listed
from millstream.model.codec import Codec
from millstream.model.data_type import Atom, Field
from millstream.model.record import PLAIN
from millstream.model.schema import Schema
from millstream.model.time_format import ISO
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError
    from millstream.model.dataset import Source

EVENT_TIME = "at"
"""What a script calls the event time of any source."""

_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a scripted source reads, in the place of its own connector."""

    schema: str | StructType
    codec: Codec
    memory: Memory

    @staticmethod
    def instead_of(source: Source) -> Source:
        """Return a source with it in the place of its connector.

        A row of JSON may have the event time itself, even if that is computed: expressions cannot
        be inverted.
        """
        arrivals, computed = Arrivals.of(source), source.event_time_from
        if computed is None or source.event_time is None or arrivals.codec.format != "json":
            return replace(source, connector=arrivals)
        fields = (*Schema.parse(arrivals.schema).fields, Field(source.event_time, Atom.TIMESTAMP))
        schema = Schema(fields).to_ddl()
        timed = replace(arrivals, schema=schema, memory=Memory(schema))
        either = f"coalesce(`{source.event_time.replace('`', '``')}`, {computed})"
        return replace(source, connector=timed, event_time_from=either)

    @staticmethod
    def of(source: Source) -> Arrivals:
        """Make it for a source: rows of its schema, encoded in its format."""
        schema: Any = source.connector.schema
        codec = source.connector.codec
        if codec.format in ("rows", "avro", "logfmt") or codec.record.is_read_by_user:
            codec = Codec("json")
        # Rows of a script have the names of columns, and times as ISO 8601 writes them.
        formats = source.connector.codec.record
        iso = {column: (*formats.formats_of(column), ISO) for column in formats.formats}
        codec = replace(codec, record=replace(PLAIN, formats=iso))
        if codec.csv is not None:
            codec = replace(codec, csv=replace(codec.csv, header=False))
        return Arrivals(schema, replace(codec, number_lines=True), Memory(schema))

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """Nothing can be wrong with the settings."""
        return self.memory.faults(source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Always within reach."""

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open what has arrived, and what will, as a stream."""
        return self.memory.read(spark, place)

    def record(self, source: Source, columns: Mapping[str, Any], day: date) -> str:
        """Write a row as a record.

        Raises:
            UNKNOWN_IN_SCRIPT: The source has no such column.
        """
        fields = {field.name: field.type for field in Schema.parse(self.schema).fields}
        row: dict[str, Any] = {}
        for column, value in columns.items():
            name = column
            if column == EVENT_TIME and column not in fields and source.event_time:
                name = source.event_time
            if name not in fields:
                raise fault(
                    "UNKNOWN_IN_SCRIPT",
                    owner=f"source {source.name!r}",
                    kind="column",
                    name=column,
                    nearest=closest(column, fields),
                    known=listed(fields),
                )
            moment = fields[name] in (Atom.TIMESTAMP, Atom.TIMESTAMP_NTZ)
            row[name] = _text(on_day(value, day)) if moment else value
        return self._encode(row, tuple(fields))

    def _encode(self, row: Mapping[str, Any], names: tuple[str, ...]) -> str:
        match self.codec.format:
            case "csv":
                line, options = io.StringIO(), self.codec.csv
                assert options is not None
                values = (options.null_value if row.get(n) is None else row[n] for n in names)
                csv.writer(line, delimiter=options.sep, lineterminator="").writerow(values)
                return line.getvalue()
            case "text":
                return str(row.get(names[0], ""))
            case _:
                return json.dumps(row, default=_text)


def on_day(value: Any, day: date) -> Any:
    """Read a time of day such as "12:00:03" as a moment of the script's day.

    >>> on_day("12:00:03", date(2026, 1, 1)).isoformat()
    '2026-01-01T12:00:03+00:00'
    """
    if isinstance(value, str) and _CLOCK.fullmatch(value):
        return datetime.fromisoformat(f"{day.isoformat()}T{value:0>5}").replace(tzinfo=UTC)
    return value


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
