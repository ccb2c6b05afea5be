"""How batches of raw records become batches of typed columns: a row in, a row out, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.avro_reader import AvroReader
from millstream.landing.decode.column import UnfitError, arrow_fields, builder
from millstream.landing.decode.csv_reader import CsvReader
from millstream.landing.decode.csv_record import NO_RECORD, RecordJoin
from millstream.landing.decode.json_reader import JsonReader
from millstream.landing.decode.line import LineCount, Run, line_numbers
from millstream.landing.decode.reader import REFUSALS, Reader, TextReader
from millstream.model.avro import AvroSchemas
from millstream.model.dataset import CsvOptions
from millstream.model.schema import Atom, Field, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from millstream.landing.decode.column import Column

Format: TypeAlias = Literal["json", "csv", "text", "avro"]
Faults: TypeAlias = dict[int, str]
"""Reasons, by row of the batch."""

_RAW = (Field("_reason", Atom.STRING), Field("_raw", Atom.BINARY))
_PLACE = (Field("_origin", Atom.STRING), Field("_position", Atom.BIGINT))
_TAKEN = ("value", "_origin", "_position")


def decoded_schema(schema: Schema, extra: Iterable[Field] = ()) -> str:
    """Write the DDL of the decoder's output, for `mapInArrow`.

    Everything is nullable: a malformed record is null in all columns.

    >>> decoded_schema(Schema.parse("n INT NOT NULL"))
    'n INT, _reason STRING, _raw BINARY, _origin STRING, _position BIGINT'
    """
    fields = (*schema.fields, *_RAW, *_PLACE, *extra)
    return Schema(fields).with_nulls().to_ddl()


def decoder(
    schema: Schema,
    *,
    format: Format,  # noqa: A002
    options: CsvOptions | AvroSchemas | None = None,
    number_lines: bool = False,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that decodes the batches of one partition, for `mapInArrow`.

    Every input row gives exactly one output row, in order. A record that is not as the schema
    says is null in all columns, has a `_reason`, and its exact bytes are in `_raw`. A record of
    several lines is in the row of its first; the others have the reason `NO_RECORD`.

    Args:
        schema: What a right record looks like.
        format: How records are written.
        options: How CSV is cut into cells; by which schemas Avro is written and read.
        number_lines: Whether `_position` is the line within `_origin`, rather than passed on.

    Raises:
        SchemaError: the format cannot carry the schema.
    """
    _reader(schema, format, options)

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = _reader(schema, format, options)
        partition = _Partition(schema, reader)
        has_header = isinstance(options, CsvOptions) and options.header
        for batch, known in _records(batches, reader, options):
            yield partition.decode(batch, known, number_lines=number_lines, has_header=has_header)

    return decode


def _reader(schema: Schema, kind: Format, options: CsvOptions | AvroSchemas | None) -> Reader:
    match kind:
        case "json":
            return JsonReader(schema)
        case "csv":
            return CsvReader(schema, options if isinstance(options, CsvOptions) else None)
        case "avro":
            assert isinstance(options, AvroSchemas)
            return AvroReader(schema, options)
        case "text":
            return TextReader(schema)
        case _:
            assert_never(kind)


def _records(
    batches: Iterator[pa.RecordBatch], reader: Reader, options: object
) -> Iterator[tuple[pa.RecordBatch, Faults]]:
    """Give batches of records, with the reasons that are known before any is read."""
    match reader, options:
        case CsvReader(), CsvOptions(multiline=True, quote=quote) if quote:
            return RecordJoin(reader).join(batches)
        case _:
            return ((batch, {}) for batch in batches)


class _Partition:
    """The decoding of one partition: what must be remembered from batch to batch."""

    def __init__(self, schema: Schema, reader: Reader) -> None:
        self._reader = reader
        self._fields = arrow_fields((*schema.fields, *_RAW, *_PLACE))
        self._builders = [builder(field.type, reader.leaf) for field in schema.fields]
        self._lines = LineCount()
        self._header_fault: str | None = None

    def decode(
        self, batch: pa.RecordBatch, known: Faults, *, number_lines: bool, has_header: bool
    ) -> pa.RecordBatch:
        """Decode one batch."""
        value, origin = batch.column("value").cast(pa.binary()), batch.column("_origin")
        raws: list[bytes | None] = value.to_numpy(zero_copy_only=False).tolist()
        rows, faults = self._read(raws, checked=self._reader.is_text and not _is_all_text(value))
        runs = self._lines.runs(origin) if number_lines or has_header else []
        if has_header:
            self._judge_headers(runs, raws, rows, faults)
        for i, reason in known.items():
            faults[i], rows[i] = reason, self._reader.blank
        columns = self._columns(raws, rows, faults)
        position = line_numbers(runs) if number_lines else batch.column("_position")
        extra = [name for name in batch.schema.names if name not in _TAKEN]
        return pa.RecordBatch.from_arrays(
            [
                *columns,
                *_verdicts(raws, faults),
                origin.cast(pa.string()),
                position.cast(pa.int64()),
                *map(batch.column, extra),
            ],
            schema=pa.schema([*self._fields, *map(batch.schema.field, extra)]),
        )

    def _read(self, raws: Sequence[Any], *, checked: bool) -> tuple[list[Any], Faults]:
        rows: list[Any] = []
        faults: Faults = {}
        read, keep = self._reader.read, rows.append
        for raw in raws:
            try:
                if checked:
                    str(raw, "utf-8")
                keep(read(raw))
            except REFUSALS:
                faults[len(rows)] = self._reason(raw)
                keep(self._reader.blank)
        return rows, faults

    def _columns(self, raws: Sequence[Any], rows: list[Any], faults: Faults) -> list[Column]:
        columns: list[Column] = []
        unfit: set[int] = set()
        for build, get in zip(self._builders, self._reader.getters, strict=True):
            try:
                columns.append(build(list(map(get, rows))))
            except UnfitError as error:
                unfit.update(error.rows)
        if not unfit:
            return columns
        for i in unfit:
            faults[i], rows[i] = self._reason(raws[i]), self._reader.blank
        return self._columns(raws, rows, faults)

    def _reason(self, raw: bytes | None) -> str:
        if raw is None:
            return "null record"
        if not self._reader.is_text:
            return self._reader.fault(raw) or "not as the schema says"
        if not raw.strip():
            return "empty record"
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            return f"not UTF-8: {error.reason} (byte {error.start})"
        return self._reader.fault(raw) or "not as the schema says"

    def _judge_headers(
        self, runs: list[Run], raws: Sequence[bytes | None], rows: list[Any], faults: Faults
    ) -> None:
        assert isinstance(self._reader, CsvReader)
        for run in runs:
            if run.line == 1:
                opens = run.opens_file
                fault = self._reader.header_fault(raws[run.start]) if opens else None
                self._header_fault = fault
                if opens and not fault:
                    faults[run.start], rows[run.start] = NO_RECORD, self._reader.blank
            if self._header_fault:
                for i in range(run.start, run.stop):
                    faults[i], rows[i] = self._header_fault, self._reader.blank


def _is_all_text(value: Column) -> bool:
    try:
        value.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return value.null_count == 0


def _verdicts(raws: Sequence[bytes | None], faults: Faults) -> tuple[Column, Column]:
    nulls = pa.nulls(len(raws), pa.string()), pa.nulls(len(raws), pa.binary())
    if not faults:
        return nulls
    rows = sorted(faults)
    hit = np.zeros(len(raws), dtype=bool)
    hit[rows] = True
    mask = pa.array(hit)
    reasons = pa.array([faults[row] for row in rows], pa.string())
    kept = pa.array([raws[row] for row in rows], pa.binary())
    return pc.replace_with_mask(nulls[0], mask, reasons), pc.replace_with_mask(nulls[1], mask, kept)
