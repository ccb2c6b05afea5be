"""Rows that a function raised on, written to files for the quarantine.

A task writes them to a file of its own, under a name that is the same for every retry. The files
belong to nothing until they are committed together with their batch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.model.state import RAISED, ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

_RULES = "_rules"
_FILE = pa.schema(
    [(_RULES, pa.list_(pa.string())), (ROW, pa.string()), (RAISED, pa.string())]
)  # the columns of a quarantine


class RaisedRow(NamedTuple):
    """A row, or the call for a timer, that a function raised on."""

    function: str
    row: str
    traceback: str


def write_raised_rows(folder: str, name: str, rows: Sequence[RaisedRow]) -> None:
    """Write rows to the file of this name, replacing that of an earlier attempt."""
    columns: list[list[Any]] = [
        [[f"{row.function} raised"] for row in rows],
        [row.row for row in rows],
        [row.traceback for row in rows],
    ]
    table = pa.Table.from_pydict(dict(zip(_FILE.names, columns, strict=True)), schema=_FILE)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    temporary = place / f".{name}.{os.getpid()}"
    pq.write_table(table, temporary, compression="zstd")
    temporary.replace(place / f"{name}.parquet")
