"""Whether published frontiers were right: no row was written behind one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from millstream.lake.frontier import moment
from millstream.lake.log import commits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from millstream.lake.home import Home
    from millstream.lake.log import Facts

_BATCH = re.compile(r"batch-(\d+)-")
_VERDICT = "partition._verdict"


def frontier_faults(home: Home, name: str) -> Iterator[str]:
    """Find frontiers of a table that went back, or that later rows are behind.

    For an append table, the event time of each row, or the end of its window, is compared.
    """
    path = home.table(name)
    published = [c for c in reversed(list(commits(path))) if c.facts is not None]
    before: int | None = None
    by_batch: dict[int, tuple[int | None, Facts]] = {}
    for commit in published:
        assert commit.facts is not None
        now = commit.facts.frontier
        if (complete_to := moment(before)) and (now is None or now < (before or 0)):
            yield f"{name} was complete to {complete_to} and is not at version {commit.version}"
        if commit.is_batch:
            by_batch[commit.facts.batch] = before, commit.facts
        before = now
    if published and (last := published[-1].facts) and last.mode == "append":
        yield from _early_rows(path, name, by_batch)


def _early_rows(
    path: Path, name: str, by_batch: dict[int, tuple[int | None, Facts]]
) -> Iterator[str]:
    actions: Any = DeltaTable(str(path)).get_add_actions(flatten=True)
    for file in pa.table(actions).to_pylist():
        numbered = _BATCH.match(file["path"])
        if numbered is None or file.get(_VERDICT, "ok") != "ok":
            continue
        frontier, facts = by_batch.get(int(numbered[1]), (None, None))
        complete_to = moment(frontier)
        if complete_to is None or facts is None:
            continue
        rows = pq.ParquetFile(path / file["path"]).read()
        for column, earliest in _times(rows, facts.event_time):
            if earliest < complete_to:
                yield (
                    f"{name} was complete to {complete_to}, and batch {facts.batch} "
                    f"has a row of {column} {earliest}"
                )


def _times(rows: pa.Table, event_time: str | None) -> Iterator[tuple[str, datetime]]:
    """Return the least event time of rows, and the least end of their windows."""
    for field in rows.schema:
        column: Any = rows.column(field.name)
        if pa.types.is_struct(field.type) and [f.name for f in field.type] == ["start", "end"]:
            column = pc.struct_field(column.combine_chunks(), "end")
        elif field.name != event_time:
            continue
        least: Any = pc.min(column)
        if least.as_py() is not None:
            yield field.name, least.as_py()
