"""Rows updated by key with delta-rs: every file that has a row of a key is written again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.lake.fenced_log import KEEP_LOG

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable

    from millstream.lake.files import DataFile

_GONE = "_gone"


def merge(
    table: DeltaTable,
    files: Sequence[DataFile],
    key: Sequence[str],
    gone: pa.Table | None,
    properties: CommitProperties,
) -> None:
    """Update the rows of files by their key, insert those that are new, and delete some keys."""
    names = map(_in_quotes, key)
    same = " AND ".join(f"(new.{name} IS NOT DISTINCT FROM old.{name})" for name in names)
    rows, present = _changes(table, files, gone)
    values = {name: f"new.{name}" for name in map(_in_quotes, present)}
    merger = table.merge(
        rows,
        same,
        source_alias="new",
        target_alias="old",
        commit_properties=properties,
        post_commithook_properties=KEEP_LOG,
    )
    if gone is not None:
        merger = merger.when_matched_delete(f'new."{_GONE}"')
    if files:
        only = f'NOT new."{_GONE}"' if gone is not None else None
        merger = merger.when_matched_update(values, only)
        merger = merger.when_not_matched_insert(values, only)
    merger.execute()


def have_all_columns(table: DeltaTable, files: Sequence[DataFile]) -> bool:
    """Return whether rows replace those of their keys as a whole; a merge keeps other columns."""
    names = {field.name for field in table.schema().fields}
    return all(names <= {*file.metadata.schema.to_arrow_schema().names} for file in files)


def _changes(
    table: DeltaTable, files: Sequence[DataFile], gone: pa.Table | None
) -> tuple[pa.RecordBatchReader | pa.Table, list[str]]:
    # Slow to import, and reading facts needs none of it.
    import pyarrow as pa
    import pyarrow.dataset as ds

    parts, present = [], list[str]()
    if files:
        rows = ds.dataset([str(file.path) for file in files], format="parquet")
        columns = [field.name for field in table.schema().fields]
        present = [name for name in columns if name in rows.schema.names]
        if gone is None:
            return rows.scanner(columns=present).to_reader(), present
        kept = rows.to_table(columns=present)
        # A deleted key has no values beside it.
        kept = kept.cast(pa.schema([field.with_nullable(nullable=True) for field in kept.schema]))
        parts.append(kept.append_column(_GONE, pa.array([False] * kept.num_rows)))
    if gone is not None:
        parts.append(gone.append_column(_GONE, pa.array([True] * gone.num_rows)))
    return pa.concat_tables(parts, promote_options="default"), present


def _in_quotes(name: str) -> str:
    """Write the name of a column as delta-rs reads it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
