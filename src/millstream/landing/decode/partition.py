"""The decoding of one partition: what must be remembered from batch to batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.column import arrow_fields, builder
from millstream.landing.decode.csv_reader import CsvReader
from millstream.landing.decode.line import BLANK, NO_RECORD, LineCount, line_numbers
from millstream.landing.decode.part import RecordPart, is_blank, text_fault
from millstream.landing.decode.reader import MalformedError
from millstream.model.data_type import Atom, Field
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.landing.decode.batch_reader import BatchReader
    from millstream.landing.decode.column import Column
    from millstream.landing.decode.line import Run
    from millstream.landing.decode.part import Bend, Faults
    from millstream.landing.decode.reader import RecordReader
    from millstream.landing.decode.time_column import TimeColumn

BENT = Field("_bent", Atom.STRING)
"""The columns of a row whose values were bent; only if the source is lenient."""
_RAW = (Field("_reason", Atom.STRING), Field("_raw", Atom.BINARY))
_PLACE = (Field("_origin", Atom.STRING), Field("_position", Atom.BIGINT))
_INPUT = ("value", "_origin", "_position")


def decoded_schema(schema: Schema, extra: Iterable[Field] = ()) -> str:
    """Write the DDL of the decoder's output, for `mapInArrow`.

    Everything is nullable: a malformed record is null in all columns.

    >>> decoded_schema(Schema.parse("n INT NOT NULL"))
    'n INT, _reason STRING, _raw BINARY, _origin STRING, _position BIGINT'
    """
    fields = (*schema.fields, *_RAW, *_PLACE, *extra)
    return Schema(fields).with_nulls().to_ddl()


def decoded_names(schema: Schema, extra: Iterable[Field] = ()) -> tuple[str, ...]:
    """List the columns of decoded rows, in order."""
    return tuple(field.name for field in (*schema.fields, *_RAW, *_PLACE, *extra))


class Partition:
    """The decoding of one partition, record by record."""

    def __init__(
        self,
        schema: Schema,
        reader: RecordReader,
        times: Sequence[TimeColumn | None],
        bend: Bend | None,
        *,
        number_lines: bool,
        has_header: bool,
    ) -> None:
        self.reader, self._bend = reader, bend
        marks = (*_RAW, *_PLACE, *((BENT,) if bend else ()))
        self._fields = arrow_fields((*schema.fields, *marks))
        self._builders = [
            time.build if time else builder(field.type, reader.leaf)
            for field, time in zip(schema.fields, times, strict=True)
        ]
        self._lines, self._number_lines, self._has_header = LineCount(), number_lines, has_header
        self._of_file: RecordReader | MalformedError = reader

    def decode(self, batch: pa.RecordBatch, known: Faults) -> pa.RecordBatch:
        """Decode one batch."""
        value, origin = batch.column("value").cast(pa.binary()), batch.column("_origin")
        raws: list[bytes | None] = value.to_numpy(zero_copy_only=False).tolist()
        checked = self.reader.is_text and not _is_all_text(value)
        runs = self._lines.runs(origin) if self._number_lines or self._has_header else []
        part = RecordPart(raws, self.reader, self._bend, checked=checked, lines=self._number_lines)
        if self._has_header:
            for run in runs:
                self._read_run(run, part)
        else:
            part.read(len(raws), self.reader)
        for i, reason in known.items():
            part.refuse(i, reason)
        columns = [*part.columns(self._builders), *_verdicts(raws, part.faults)]
        position = line_numbers(runs) if self._number_lines else batch.column("_position")
        bent = [_texts(part.bent, len(raws))] if self._bend else []
        return _assembled(batch, self._fields, columns, position, bent)

    def _read_run(self, run: Run, part: RecordPart) -> None:
        """Read lines of one file, whose columns are where its header says."""
        if run.line == 1:
            self._of_file = self._opened(part) if run.opens_file else self.reader
        if isinstance(self._of_file, MalformedError):
            part.refuse_to(run.stop, str(self._of_file))
        else:
            part.read(run.stop, self._of_file)

    def _opened(self, part: RecordPart) -> RecordReader | MalformedError:
        """Return the reader of a file, after its header; or what is wrong with that."""
        assert isinstance(self.reader, CsvReader)
        try:
            reader = self.reader.with_header(part.next)
        except MalformedError as error:
            return error
        part.refuse_to(len(part.rows) + 1, NO_RECORD)
        return reader


class BatchPartition:
    """The decoding of one partition by a reader of whole batches."""

    def __init__(self, schema: Schema, reader: BatchReader, *, number_lines: bool) -> None:
        self.reader, self._number_lines = reader, number_lines
        self._fields = arrow_fields((*schema.fields, *_RAW, *_PLACE))
        self._lines = LineCount()

    def decode(self, batch: pa.RecordBatch, known: Faults) -> pa.RecordBatch:
        """Decode one batch; nothing is known of its records before."""
        assert not known
        value: Column = batch.column("value").cast(pa.binary())
        raws: list[bytes | None] = value.to_numpy(zero_copy_only=False).tolist()
        unread = {i: "null record" for i, raw in enumerate(raws) if raw is None}
        if self._number_lines:
            unread |= {i: BLANK for i, raw in enumerate(raws) if raw is not None and is_blank(raw)}
        if self.reader.is_text and not _is_all_text(value):
            unread |= _not_text(raws)
        if unread:
            value = pa.array([None if i in unread else r for i, r in enumerate(raws)], pa.binary())
        columns, faults = self.reader.read_batch(value)
        if self.reader.is_text:
            faults = {i: text_fault(raws[i] or b"") or reason for i, reason in faults.items()}
        runs = self._lines.runs(batch.column("_origin")) if self._number_lines else []
        position = line_numbers(runs) if self._number_lines else batch.column("_position")
        verdicts = _verdicts(raws, faults | unread)
        return _assembled(batch, self._fields, [*columns, *verdicts], position)


def _assembled(
    batch: pa.RecordBatch,
    fields: Sequence[pa.Field[Any]],
    columns: list[Column],
    position: Column,
    bent: Sequence[Column] = (),
) -> pa.RecordBatch:
    """Put decoded columns together with what came with the records."""
    extra = [name for name in batch.schema.names if name not in _INPUT]
    return pa.RecordBatch.from_arrays(
        [
            *columns,
            batch.column("_origin").cast(pa.string()),
            position.cast(pa.int64()),
            *bent,
            *map(batch.column, extra),
        ],
        schema=pa.schema([*fields, *map(batch.schema.field, extra)]),
    )


def _not_text(raws: Sequence[bytes | None]) -> Faults:
    found = ((i, text_fault(raw)) for i, raw in enumerate(raws) if raw and raw.strip())
    return {i: reason for i, reason in found if reason is not None}


def _is_all_text(value: Column) -> bool:
    try:
        value.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return value.null_count == 0


def _texts(found: Mapping[int, str], rows: int) -> Column:
    return pa.array(map(found.get, range(rows)), pa.string(), size=rows)


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
