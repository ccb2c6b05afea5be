"""How one answer differs from another: rows that are new or another, and those that are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def write_difference(
    into: Path,
    *,
    old: Sequence[Path],
    new: Sequence[Path],
    key: Sequence[str],
    gone: Sequence[str],
) -> None:
    """Write what changed between two answers as a Parquet file; none, if there are no rows at all.

    Args:
        into: The file.
        old: The files of the answer before.
        new: The files of the answer now.
        key: The columns that identify a row.
        gone: Columns that are made true in rows that only the answer before has a key of.
    """
    import duckdb

    if not old and not new:
        return
    with duckdb.connect() as db:
        # The answer may not fit into memory twice; what does not is put beside the file.
        db.execute(f"SET temp_directory = '{_quoted(into.parent / 'spill')}'")
        db.execute("SET preserve_insertion_order = false")
        for name, files, other in (("old", old, new), ("new", new, old)):
            listed = ", ".join(f"'{_quoted(file)}'" for file in files or other)
            nothing = "" if files else " WHERE false"
            db.execute(
                f"CREATE VIEW {name}_rows AS SELECT * FROM read_parquet([{listed}]){nothing}"
            )
        same = " AND ".join(f'n."{_named(k)}" IS NOT DISTINCT FROM o."{_named(k)}"' for k in key)
        marks = ", ".join(f'true AS "{_named(name)}"' for name in gone)
        db.execute(
            f"COPY (FROM new_rows EXCEPT FROM old_rows "
            f"UNION ALL BY NAME SELECT * REPLACE ({marks}) FROM old_rows o "
            f"WHERE NOT EXISTS (FROM new_rows n WHERE {same})) "
            f"TO '{_quoted(into)}' (FORMAT parquet)"
        )


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _named(column: str) -> str:
    return column.replace('"', '""')
