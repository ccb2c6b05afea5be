"""Parquet files that Spark wrote, and what Delta wants to know about them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from deltalake.transaction import AddAction

from millstream.lake.durable import sync_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow.parquet as pq


_LONGEST_TEXT = 32


@dataclass(frozen=True, slots=True)
class DataFile:
    """One parquet file, not yet part of a table."""

    path: Path
    partition: Mapping[str, str | None]
    metadata: pq.FileMetaData

    @staticmethod
    def read(path: Path, partition: Mapping[str, str | None]) -> DataFile:
        """Take a file as it was written."""
        import pyarrow.parquet as pq

        return DataFile(path, partition, pq.read_metadata(path))

    @property
    def rows(self) -> int:
        """Number of rows in the file."""
        return int(self.metadata.num_rows)

    def greatest(self, column: str) -> Any:
        """Read the greatest value of a column from the footer; None if it has none."""
        bounds = _bounds(self.metadata).get(column)
        return bounds[1] if bounds else None

    def nulls(self, column: str) -> int:
        """Count the nulls of a column, from the footer."""
        return _null_counts(self.metadata).get(column, 0)

    def without(self, *columns: str) -> DataFile:
        """Leave partition columns out that the table does not have."""
        kept = {name: value for name, value in self.partition.items() if name not in columns}
        return DataFile(self.path, kept, self.metadata)

    def move_into(self, table: Path, name: str, *, data_change: bool = True) -> AddAction:
        """Move the file into a table's folder, durably, and describe it for the log."""
        target = table / name
        sync_file(self.path)
        self.path.replace(target)
        status = target.stat()
        return AddAction(
            path=name,
            size=status.st_size,
            partition_values=dict(self.partition),
            modification_time=int(status.st_mtime * 1000),
            data_change=data_change,
            stats=json.dumps(_statistics(self.metadata)),
        )


def count_rows(files: Sequence[DataFile]) -> int:
    """Add up the rows of files."""
    return sum(file.rows for file in files)


def _statistics(metadata: pq.FileMetaData) -> dict[str, Any]:
    bounds = {name: b for name, b in _bounds(metadata).items() if _is_plain(b[0], b[1])}
    return {
        "numRecords": metadata.num_rows,
        "minValues": {name: _to_json(low) for name, (low, _) in bounds.items()},
        "maxValues": {name: _to_json(high, up=True) for name, (_, high) in bounds.items()},
        "nullCount": _null_counts(metadata),
    }


def _bounds(metadata: pq.FileMetaData) -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    unknown: set[str] = set()
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            name, statistics = column.path_in_schema, column.statistics
            if metadata.schema.column(index).name != name or statistics is None:
                unknown.add(name)
            elif statistics.has_min_max:
                try:
                    low, high = statistics.min, statistics.max
                except (ValueError, OverflowError):
                    # Text that is not UTF-8, or a time after the year 9999.
                    unknown.add(name)
                    continue
                before = found.get(name, (low, high))
                found[name] = (min(low, before[0]), max(high, before[1]))
            elif statistics.null_count != column.num_values:
                unknown.add(name)
    return {name: bounds for name, bounds in found.items() if name not in unknown}


def _null_counts(metadata: pq.FileMetaData) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            name, statistics = column.path_in_schema, column.statistics
            # Of a part of a struct, the path is longer than the name.
            if metadata.schema.column(index).name == name and statistics is not None:
                counts[name] = counts.get(name, 0) + (statistics.null_count or 0)
    return counts


def _is_plain(low: Any, high: Any) -> bool:
    if isinstance(low, bool):
        return False
    if isinstance(low, float):
        return math.isfinite(low) and math.isfinite(high)
    if isinstance(low, str):
        return len(low) <= _LONGEST_TEXT and len(high) <= _LONGEST_TEXT
    return isinstance(low, int | date)


def _to_json(value: Any, *, up: bool = False) -> Any:
    if isinstance(value, datetime):
        # Readers expect milliseconds; a greatest value cut short would hide rows.
        cut = timedelta(microseconds=value.microsecond % 1000)
        moment = value - cut + (timedelta(milliseconds=1) if up and cut else timedelta())
        text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return text + ("Z" if value.tzinfo is UTC or value.tzinfo is not None else "")
    return value.isoformat() if isinstance(value, date) else value
