"""Columns that pass through Spark unread: those of a batch are one value, in its first row.

Spark computes an event time row by row, and so it gets only the columns that the expression reads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CARRIED = "_carried"
"""The column with that value; null in all other rows of the batch."""


def pack(batches: Iterator[pa.RecordBatch], read: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Put all columns but those that Spark reads into one value."""
    for batch in batches:
        if not batch.num_rows:
            continue
        others = batch.select([name for name in batch.schema.names if name not in read])
        first = pa.array([_written(others)], pa.binary())
        carried: Any = pa.concat_arrays([first, pa.nulls(batch.num_rows - 1, pa.binary())])
        yield pa.RecordBatch.from_arrays([*map(batch.column, read), carried], [*read, CARRIED])


def unpack(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Return the columns of these names, of rows that Spark has cut into other batches."""
    carried, row = pa.RecordBatch.from_pydict({}), 0
    for batch in batches:
        values: Any = batch.column(CARRIED)
        firsts = set(pc.indices_nonzero(values.is_valid()).to_pylist())
        for start, stop in pairwise(sorted({0, *firsts, batch.num_rows})):
            if start in firsts:
                carried, row = _read(values[start].as_buffer()), 0
            rows = stop - start
            columns = _columns(carried.slice(row, rows)) | _columns(batch.slice(start, rows))
            row += rows
            yield pa.RecordBatch.from_arrays([columns[name] for name in names], [*names])


def _columns(batch: pa.RecordBatch) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _read(buffer: pa.Buffer) -> pa.RecordBatch:
    with pa.ipc.open_stream(buffer) as reader:
        return reader.read_next_batch()
