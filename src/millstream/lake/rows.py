"""The rows of stored files without those that are deleted where they are."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable

from millstream.lake.log import FEATURE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.lake.deletion_vector import Positions


def read_rows(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read all rows of a table, or some of its columns, as they are now."""
    table = DeltaTable(str(path))
    if FEATURE not in (table.protocol().reader_features or ()):
        wanted = None if columns is None else list(columns)
        return table.to_pyarrow_table(columns=wanted)
    import pyarrow as pa
    import pyarrow.parquet as pq

    from millstream.lake.live_files import LiveFiles

    described: Any = table.schema().to_arrow()
    schema: Any = pa.schema(described)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    live = LiveFiles.at(path, table.version())
    batches: list[pa.RecordBatch] = []
    for name in live.adds:
        with pq.ParquetFile(path / unquote(name)) as file:
            there = [column for column in schema.names if column in file.schema_arrow.names]
            rows = live_rows(file.iter_batches(columns=there), live.deleted(name))
            batches += (fitted(batch, schema) for batch in rows)
    return pa.Table.from_batches(batches, schema)


def live_rows(
    batches: Iterable[pa.RecordBatch], deleted: Positions | None
) -> Iterator[pa.RecordBatch]:
    """Leave deleted rows out of the batches of a file.

    Args:
        batches: All rows of the file, in order.
        deleted: The positions that are left out, ascending.
    """
    if deleted is None or not len(deleted):
        yield from batches
        return
    import numpy as np

    begin = 0
    for batch in batches:
        end = begin + batch.num_rows
        within = deleted[np.searchsorted(deleted, begin) : np.searchsorted(deleted, end)]
        kept = np.ones(batch.num_rows, bool)
        kept[within.astype(np.int64) - begin] = False
        yield kept_rows(batch, kept.tolist()) if len(within) else batch
        begin = end


def kept_rows(rows: pa.RecordBatch, kept: list[bool]) -> pa.RecordBatch:
    """Keep some rows, of any type: Arrow filters no views, as which delta-rs writes texts."""
    import pyarrow as pa

    arrow: Any = pa
    try:
        return rows.filter(pa.array(kept))
    except pa.ArrowNotImplementedError:
        parts: list[pa.RecordBatch] = []
        start = 0
        for is_kept, run in groupby(kept):
            length = len(list(run))
            if is_kept:
                parts.append(rows.slice(start, length))
            start += length
        return arrow.concat_batches(parts) if parts else rows.slice(0, 0)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Write texts as Spark's workers do, not as views, as delta-rs does."""
    import pyarrow as pa

    return pa.schema([pa.field(f.name, _plain(f.type), f.nullable) for f in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    arrow: Any = pa
    types, known = arrow.types, kind
    any_kind: Any = kind
    if types.is_string_view(kind) or types.is_large_string(kind):
        known = pa.string()
    elif types.is_binary_view(kind) or types.is_large_binary(kind):
        known = pa.binary()
    elif types.is_struct(kind):
        fields = (any_kind.field(number) for number in range(any_kind.num_fields))
        known = pa.struct([pa.field(f.name, _plain(f.type), f.nullable) for f in fields])
    elif types.is_map(kind):
        known = pa.map_(_plain(any_kind.key_type), _plain(any_kind.item_type))
    elif types.is_list(kind):
        item = any_kind.value_field
        known = pa.list_(pa.field(item.name, _plain(item.type), item.nullable))
    return known


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch the columns of a schema, null where it has none."""
    import pyarrow as pa

    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
