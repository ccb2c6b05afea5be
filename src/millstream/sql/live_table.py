"""The live files of a Delta table, as DuckDB reads them: no more and no fewer than the log says."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable

from millstream.errors import fault, listed
from millstream.sql.types import Type, quoted, string_literal

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.sql.scope import Columns

_FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "appendOnly", "typeWidening"}
"""What a table may ask of its readers that changes nothing for us."""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table at one version."""

    columns: Columns
    files: tuple[str, ...]
    text: str
    """How DuckDB reads it."""

    @staticmethod
    def open(name: str, path: Path, version: int | None = None) -> LiveTable:
        """Read the log of a table.

        Raises:
            TABLE_NOT_TRANSLATED: It has deletion vectors, column mapping or the like.
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
        return LiveTable(columns, files, _read(columns, partitions, groups))


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


def _read(
    columns: Columns, partitions: tuple[str, ...], groups: dict[tuple[Any, ...], list[str]]
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
        listed = ", ".join(string_literal(file) for file in files)
        options = "union_by_name = true, hive_partitioning = false"
        parts.append(f"SELECT *{fixed} FROM read_parquet([{listed}], {options})")
    names = ", ".join(_seen(name, kind) for name, kind in columns)
    return f"(SELECT {names} FROM ({' UNION ALL BY NAME '.join(parts)}))"


def _constant(value: object, kind: Type) -> str:
    return f"CAST({'NULL' if value is None else string_literal(str(value))} AS {kind.duck})"


def _seen(name: str, kind: Type) -> str:
    # DuckDB takes the greatest value of a file from its footer, which leaves NaN out: a comparison
    # would be decided, or a file skipped, without looking at the values.
    column = quoted(name)
    return f"seen({column}) AS {column}" if kind.kind in ("float", "double") else column
