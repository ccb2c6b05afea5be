"""The live files of a Delta table, as DuckDB reads them: no more and no fewer than the log says."""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable

from millstream.errors import fault, listed
from millstream.lake.log import FEATURE
from millstream.sql.types import Type, quoted, string_literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from millstream.sql.scope import Columns

_FEATURES = {
    FEATURE,
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "appendOnly",
    "typeWidening",
}
"""What a table may ask of its readers that changes nothing for us, or is done here."""
_POSITION = "file_row_number"
"""What DuckDB calls the position of a row in its file."""


_LARGE_ROWS = 100_000
"""Of a file with fewer, the bits would cost more as a table than as a filter."""


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Which rows of a file are deleted."""

    name: str
    bits: bytes
    """One for each row, and some that fill the last byte: 1 if there is no such row any more."""
    is_table: bool
    """Whether they are read as a table with a column of the same name, not as a variable."""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table at one version."""

    columns: Columns
    files: tuple[str, ...]
    text: str
    """How DuckDB reads it."""
    deleted: Mapping[str, DeletedRows] = field(default_factory=dict)
    """Under names that the text uses: which rows of a file are deleted."""

    @staticmethod
    def open(
        name: str, path: Path, version: int | None = None, *, is_read_whole: bool = False
    ) -> LiveTable:
        """Read the log of a table.

        Args:
            name: Of the table.
            path: Where it is.
            version: By default the newest.
            is_read_whole: Whether a query needs all rows of it.

        Raises:
            TABLE_NOT_TRANSLATED: It has column mapping or the like.
        """
        table = DeltaTable(str(path), version=version)
        _verify(name, table)
        columns = _columns(table)
        if unknown := [
            f"type {kind} of {column!r}" for column, kind in columns if not kind.is_known
        ]:
            raise fault("TABLE_NOT_TRANSLATED", table=name, features=listed(unknown))
        partitions = tuple(table.metadata().partition_columns)
        groups = _groups(name, path, table, partitions)
        files = tuple(file for group in groups.values() for file in group)
        deleted = _deleted(path, table)
        if deleted and _POSITION in dict(columns):
            found = listed([f"deletion vectors with a column {_POSITION!r}"])
            raise fault("TABLE_NOT_TRANSLATED", table=name, features=found)
        joined = _joined(deleted) if is_read_whole else set()
        marks = {
            file: DeletedRows(f"deleted_{uuid.uuid4().hex}", bits, file in joined)
            for file, bits in deleted.items()
        }
        text = _read(columns, partitions, groups, marks)
        return LiveTable(columns, files, text, {mark.name: mark for mark in marks.values()})


def columns_of(path: Path) -> Columns:
    """Return the columns of a table."""
    return _columns(DeltaTable(str(path)))


def _columns(table: DeltaTable) -> Columns:
    schema = json.loads(table.schema().to_json())
    return tuple((f["name"], Type.of_delta(f["type"])) for f in schema["fields"])


def _verify(name: str, table: DeltaTable) -> None:
    required = set(table.protocol().reader_features or ()) - _FEATURES
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        required.add("columnMapping")
    if required:
        raise fault("TABLE_NOT_TRANSLATED", table=name, features=listed(required))


def _groups(
    name: str, path: Path, table: DeltaTable, partitions: tuple[str, ...]
) -> dict[tuple[Any, ...], list[str]]:
    """Return the live files by the values of the partition columns."""
    actions: Any = table.get_add_actions(flatten=True)
    paths = [value.as_py() for value in actions.column("path")]
    values = [[v.as_py() for v in actions.column(f"partition.{column}")] for column in partitions]
    groups = defaultdict(list)
    for number, file in enumerate(paths):
        if ":/" in file:
            raise fault(
                "TABLE_NOT_TRANSLATED", table=name, features=listed(["files outside of its folder"])
            )
        groups[tuple(column[number] for column in values)].append(str(path / unquote(file)))
    return dict(groups)


def _deleted(path: Path, table: DeltaTable) -> dict[str, bytes]:
    """Return a bit for each row of the files in which rows are deleted."""
    if FEATURE not in (table.protocol().reader_features or ()):
        return {}
    # Slow to import, and few tables need them.
    import numpy as np
    import pyarrow as pa

    vectors = pa.table(pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all())
    rows, found = _rows(path, table), dict[str, bytes]()
    for uri, kept in zip(*vectors.columns, strict=True):
        # Links are followed in these URIs.
        name = unquote(urlparse(uri.as_py()).path).removeprefix(f"{path.resolve()}/")
        bits = np.ones(-(-rows[name] // 8) * 8, np.uint8)
        bits[: rows[name]] = 0
        selected: Any = kept.values
        bits[: len(selected)] = ~selected.to_numpy(zero_copy_only=False)
        found[str(path / name)] = np.packbits(bits).tobytes()
    return found


def _rows(path: Path, table: DeltaTable) -> dict[str, int]:
    import pyarrow.parquet as pq

    actions: Any = table.get_add_actions()
    names, rows = (actions.column(name).to_pylist() for name in ("path", "num_records"))
    known = {unquote(name): count for name, count in zip(names, rows, strict=True)}
    return {
        name: pq.read_metadata(path / name).num_rows if count is None else count
        for name, count in known.items()
    }


def _joined(deleted: Mapping[str, bytes]) -> set[str]:
    """Choose the files that are read beside their bits, which is cheaper than any filter.

    One thread reads a file then, and no part of it is skipped.
    """
    large = {file for file, bits in deleted.items() if len(bits) * 8 >= _LARGE_ROWS}
    return large if len(large) >= (os.cpu_count() or 1) else set()


def _read_live(file: str, mark: DeletedRows, fixed: str, options: str) -> str:
    """Read the rows of a file that are not deleted."""
    path, name = string_literal(file), mark.name
    if mark.is_table:
        read = f"read_parquet([{path}], {options}) POSITIONAL JOIN {name}"
        return f"SELECT * EXCLUDE ({name}){fixed} FROM {read} WHERE NOT {name}"
    read = f"read_parquet([{path}], {options}, {_POSITION} = true)"
    is_deleted = f"get_bit(getvariable('{name}'), {_POSITION}::INTEGER)"
    return f"SELECT * EXCLUDE ({_POSITION}){fixed} FROM {read} WHERE {is_deleted} = 0"


def _read(
    columns: Columns,
    partitions: tuple[str, ...],
    groups: dict[tuple[Any, ...], list[str]],
    marks: Mapping[str, DeletedRows],
) -> str:
    # The schema comes first, so that columns are of its types and in its order, and null where a
    # file is older than the column.
    types = dict(columns)
    nulls = ", ".join(f"CAST(NULL AS {kind.duck}) AS {quoted(name)}" for name, kind in columns)
    parts = [f"SELECT {nulls} WHERE FALSE"]
    for values, files in groups.items():
        fixed = "".join(
            f", {_constant(value, types[name])} AS {quoted(name)}"
            for name, value in zip(partitions, values, strict=True)
        )
        options = "union_by_name = true, hive_partitioning = false"
        if whole := [file for file in files if file not in marks]:
            named = ", ".join(map(string_literal, whole))
            parts.append(f"SELECT *{fixed} FROM read_parquet([{named}], {options})")
        parts += (_read_live(f, marks[f], fixed, options) for f in files if f in marks)
    names = ", ".join(_seen(name, kind) for name, kind in columns)
    return f"(SELECT {names} FROM ({' UNION ALL BY NAME '.join(parts)}))"


def _constant(value: object, kind: Type) -> str:
    return f"CAST({'NULL' if value is None else string_literal(str(value))} AS {kind.duck})"


def _seen(name: str, kind: Type) -> str:
    # DuckDB takes the greatest value of a file from its footer, which leaves NaN out: a comparison
    # would be decided, or a file skipped, without looking at the values.
    column = quoted(name)
    return f"seen({column}) AS {column}" if kind.kind in ("float", "double") else column
