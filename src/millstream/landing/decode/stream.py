"""How batches of raw records become batches of typed columns: a row in, a row out, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from millstream.landing.decode.avro_reader import AvroReader
from millstream.landing.decode.batch_reader import BatchReader
from millstream.landing.decode.csv_reader import CsvReader
from millstream.landing.decode.csv_record import RecordJoin
from millstream.landing.decode.json_bender import JsonBender
from millstream.landing.decode.json_fields import json_reader
from millstream.landing.decode.logfmt_reader import LogfmtReader
from millstream.landing.decode.parse_reader import ParseReader, function_of
from millstream.landing.decode.partition import BatchPartition, Partition
from millstream.landing.decode.pattern_reader import PatternReader
from millstream.landing.decode.reader import TextReader
from millstream.landing.decode.time_column import TimeColumn
from millstream.model.avro import AvroSchemas
from millstream.model.codec import CsvOptions
from millstream.model.line_pattern import LinePattern
from millstream.model.record import PLAIN, RecordOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from millstream.landing.decode.part import Bend, Faults
    from millstream.landing.decode.reader import RecordReader
    from millstream.model.schema import Schema

Format: TypeAlias = Literal["json", "csv", "text", "logfmt", "avro"]


def decoder(
    schema: Schema,
    *,
    format: Format,  # noqa: A002
    options: CsvOptions | AvroSchemas | None = None,
    record: RecordOptions = PLAIN,
    number_lines: bool = False,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that decodes the batches of one partition, for `mapInArrow`.

    Every input row gives exactly one output row, in order. A record that is not as the schema
    says is null in all columns, has a `_reason`, and its exact bytes are in `_raw`. A record of
    several lines is in the row of its first; the others have the reason `NO_RECORD`. A blank line
    has the reason `BLANK`. If columns are lenient, `_bent` names those of a row that were bent.

    Args:
        schema: What a right record looks like.
        format: How records are written.
        options: How CSV is cut into cells; by which schemas Avro is written and read.
        record: How the fields of a record become columns.
        number_lines: Whether records are lines and `_position` is the line within `_origin`,
            rather than passed on.

    Raises:
        SchemaError: the format cannot carry the schema.
    """
    parse = None if record.parse is None else function_of(record.parse)
    options_of = _Options(schema, format, options, record, number_lines)

    def read_by(times: Mapping[str, TimeColumn]) -> RecordReader | BatchReader:
        return options_of.reader(times) if parse is None else ParseReader(schema, parse)

    read_by({})

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        times = TimeColumn.by_field(options_of.fields, schema, record)
        partition = options_of.partition(read_by(times), times)
        for batch, known in _records(batches, partition.reader, options):
            yield partition.decode(batch, known)

    return decode


@dataclass(frozen=True, slots=True)
class _Options:
    """How the records of a source are decoded."""

    schema: Schema
    format: Format
    options: CsvOptions | AvroSchemas | None
    record: RecordOptions
    number_lines: bool

    @property
    def fields(self) -> Schema:
        """The columns, by the names of their fields."""
        return self.record.fields_of(self.schema)

    def partition(
        self, reader: RecordReader | BatchReader, times: Mapping[str, TimeColumn]
    ) -> Partition | BatchPartition:
        """Make the decoding of one partition."""
        if isinstance(reader, BatchReader):
            return BatchPartition(self.schema, reader, number_lines=self.number_lines)
        return Partition(
            self.schema,
            reader,
            [times.get(name) for name in self.fields.names],
            self._bender(times),
            number_lines=self.number_lines,
            has_header=isinstance(self.options, CsvOptions) and self.options.header,
        )

    def reader(self, times: Mapping[str, TimeColumn]) -> RecordReader | BatchReader:
        """Make the reader of records."""
        fields, record, options = self.fields, self.record, self.options
        if record.pattern:
            return PatternReader(fields, times, LinePattern(record.pattern))
        match self.format:
            case "json":
                return json_reader(fields, times, record)
            case "csv":
                csv = options if isinstance(options, CsvOptions) else None
                return CsvReader(fields, csv, times, record.rest)
            case "logfmt":
                return LogfmtReader(fields, times)
            case "avro":
                assert isinstance(options, AvroSchemas)
                return AvroReader(fields, options)
            case "text":
                return TextReader(fields, lines=self.number_lines)
            case _:
                assert_never(self.format)

    def _bender(self, times: Mapping[str, TimeColumn]) -> Bend | None:
        """Make the function that makes records fit; None if no column is lenient."""
        columns = self.record.lenient_columns(self.schema)
        if not columns:
            return None
        if self.format == "json":
            bender = JsonBender(self.schema, times, self.record)
            return lambda _, raw: bender.bend(raw)
        pairs = zip(self.fields.names, self.schema.names, strict=True)
        lenient = {field: column for field, column in pairs if column in columns}

        def bend(reader: RecordReader, raw: bytes) -> tuple[bytes, tuple[str, ...]]:
            assert isinstance(reader, CsvReader)
            line, bent = reader.bend(raw, lenient)
            return line, tuple(lenient[field] for field in bent)

        return bend


def _records(
    batches: Iterator[pa.RecordBatch], reader: RecordReader | BatchReader, options: object
) -> Iterator[tuple[pa.RecordBatch, Faults]]:
    """Give batches of records, with the reasons that are known before any is read."""
    match reader, options:
        case CsvReader(), CsvOptions(multiline=True, quote=quote) if quote:
            return RecordJoin(reader).join(batches)
        case _:
            return ((batch, {}) for batch in batches)
