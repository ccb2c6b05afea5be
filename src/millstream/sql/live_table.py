"""The live files of a Delta table, as DuckDB reads them: no more and no fewer than the log says."""

from __future__ import annotations

import json
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


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table at one version."""

    columns: Columns
    files: tuple[str, ...]
    text: str
    """How DuckDB reads it."""
    deleted: Mapping[str, bytes] = field(default_factory=dict)
    """Under names that the text uses: a bit for each row of a file, 1 if it is deleted."""

    @staticmethod
    def open(name: str, path: Path, version: int | None = None) -> LiveTable:
        """Read the log of a table.

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
        marks = {file: f"deleted_{uuid.uuid4().hex}" for file in deleted}
        text = _read(columns, partitions, groups, marks)
        return LiveTable(columns, files, text, {marks[file]: deleted[file] for file in deleted})


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
        bits = np.zeros(rows[name], np.uint8)
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


def _read(
    columns: Columns,
    partitions: tuple[str, ...],
    groups: dict[tuple[Any, ...], list[str]],
    marks: Mapping[str, str],
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
        for file in (file for file in files if file in marks):
            read = f"read_parquet([{string_literal(file)}], {options}, {_POSITION} = true)"
            deleted = f"get_bit(getvariable('{marks[file]}'), {_POSITION}::INTEGER)"
            part = f"SELECT * EXCLUDE ({_POSITION}){fixed} FROM {read} WHERE {deleted} = 0"
            parts.append(part)
    names = ", ".join(_seen(name, kind) for name, kind in columns)
    return f"(SELECT {names} FROM ({' UNION ALL BY NAME '.join(parts)}))"


def _constant(value: object, kind: Type) -> str:
    return f"CAST({'NULL' if value is None else string_literal(str(value))} AS {kind.duck})"


def _seen(name: str, kind: Type) -> str:
    # DuckDB takes the greatest value of a file from its footer, which leaves NaN out: a comparison
    # would be decided, or a file skipped, without looking at the values.
    column = quoted(name)
    return f"seen({column}) AS {column}" if kind.kind in ("float", "double") else column
