"""Parquet files written where the rows are: in Spark's Python workers, as Arrow, without a detour.

Spark's own writer costs a batch of 1,000 rows several times what the rows do: it renames, it starts
the `chmod` program for every file, and its code must warm up. Files written here belong to nothing
until the driver, which learns their names only from tasks that succeeded, commits them.
"""

from __future__ import annotations

import json
import uuid
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Batches = Iterator[pa.RecordBatch]

WRITTEN = "name STRING, partition STRING"
"""The columns that a writer returns for each file, as Spark's DDL."""

_ROW_GROUP_ROWS = 500_000
_ROW_GROUP_BYTES = 64 << 20
_OPEN_FILES = 64


def writer(
    into: str,
    partition_by: Sequence[str],
    transform: Callable[[Batches], Batches] | None = None,
) -> Callable[[Batches], Batches]:
    """Make the function that writes the rows of one task, for `mapInArrow`.

    Args:
        into: An existing folder.
        partition_by: Columns whose values get files of their own, and are not in the files.
        transform: What to do to the rows first.
    """

    def write(batches: Batches) -> Batches:
        folder, files = Path(into), dict[str, PartFile]()
        closed: list[tuple[str, str]] = []
        for batch in transform(batches) if transform else batches:
            for partition, rows in _split(batch, partition_by):
                if partition not in files and len(files) >= _OPEN_FILES:
                    closed.append(files.pop(next(iter(files))).close())
                file = files.setdefault(partition, PartFile(folder, partition))
                file.add(rows)
        closed += [file.close() for file in files.values()]
        names, partitions = [name for name, _ in closed], [partition for _, partition in closed]
        yield pa.RecordBatch.from_arrays(
            [pa.array(names, pa.string()), pa.array(partitions, pa.string())],
            ["name", "partition"],
        )

    return write


class PartFile:
    """One file, written row group by row group."""

    def __init__(self, folder: Path, partition: str) -> None:
        self._path, self._partition = folder / f"{uuid.uuid4()}.parquet", partition
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Write rows after those that are there."""
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _ROW_GROUP_ROWS or self._bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> tuple[str, str]:
        """Finish the file; return its name and its partition."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
        return self._path.name, self._partition

    def drop(self) -> None:
        """Leave no file behind, if no row is to be kept."""
        if self._writer is not None:
            self._writer.close()
            self._path.unlink()

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, rows.schema, compression="zstd")
        self._writer.write_table(rows, row_group_size=_ROW_GROUP_ROWS)
        self._waiting, self._rows, self._bytes = [], 0, 0


def _split(
    batch: pa.RecordBatch, partition_by: Sequence[str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    if not batch.num_rows:
        return
    if not partition_by:
        yield "{}", batch
        return
    rest = batch.select([name for name in batch.schema.names if name not in partition_by])
    distinct = pa.Table.from_batches([batch]).group_by(list(partition_by)).aggregate([])
    for values in distinct.to_pylist():
        same = _rows_with(batch, values) if distinct.num_rows > 1 else None
        partition = {name: partition_text(value) for name, value in values.items()}
        yield json.dumps(partition), rest if same is None else rest.filter(same)


def _rows_with(batch: pa.RecordBatch, values: dict[str, Any]) -> Any:
    same: Any = None
    for name, value in values.items():
        column = batch.column(name)
        equal: Any = column.is_null()
        if value is not None:
            equal = pc.equal(column, pa.scalar(value, column.type))
        same = equal if same is None else pc.and_kleene(same, equal)
    return same


def partition_text(value: Any) -> str | None:
    """Write a value as Delta writes partition values."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            return str(value)
