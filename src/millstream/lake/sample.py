"""A few rows of a table, without Spark, pyarrow or pandas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, QueryBuilder

from millstream.errors import fault

if TYPE_CHECKING:
    from millstream.lake.home import Home


def read_sample(
    home: Home, name: str, rows: int
) -> tuple[list[dict[str, Any]], tuple[str, ...], list[tuple[Any, ...]]]:
    """Read the columns of a table in Spark's JSON, their names, and some rows.

    Raises:
        UNKNOWN_TABLE: There is no such table.
        HOME_DAMAGED: The table, or a file of it, cannot be read.
    """
    path = home.existing(name)
    try:
        table = DeltaTable(str(path))
        fields = list(json.loads(table.schema().to_json())["fields"])
        names = tuple(str(field["name"]) for field in fields)
        return fields, names, _rows(table, names, rows) if rows else []
    except Exception as error:  # Of a file that cannot be read, delta-rs raises just that.
        raise fault("HOME_DAMAGED", file=str(path), why=str(error).splitlines()[0]) from error


def _rows(table: DeltaTable, names: tuple[str, ...], rows: int) -> list[tuple[Any, ...]]:
    asked = QueryBuilder().register("rows", table).execute(f"SELECT * FROM rows LIMIT {rows}")
    found = asked.read_all()
    columns = [found.column(name) for name in names]
    return [tuple(c[row].as_py() for c in columns) for row in range(found.num_rows)]
