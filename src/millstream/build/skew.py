"""Which aggregation brings most of its rows to one task, as measured on what has landed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from millstream.check.tables import stored_inputs
from millstream.errors import MillstreamError, fault
from millstream.spark.nodes import listed, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from millstream.errors import Location
    from millstream.lake.home import Home
    from millstream.model.dataset import Serve, Table
    from millstream.model.graph import Graph

_FILES = 8
"""How many of the newest files are read."""
_FEWEST_ROWS = 10_000
_SHARE = 0.5
_WINDOW = "struct<start:timestamp,end:timestamp>"
_MOVED_WHOLE = ("distinct ", "collect_list(", "collect_set(")
"""Aggregates for which Spark moves the values of all rows to one task."""


def skewed_keys(
    dataset: Table | Serve,
    frame: DataFrame,
    made: Sequence[tuple[Location, DataFrame]],
    graph: Graph,
    home: Home,
) -> Iterator[MillstreamError]:
    """Find aggregations for which half of the rows that have landed have one key.

    Args:
        dataset: What the answer is of.
        frame: The answer.
        made: All that was made on the way to it.
        graph: Says what it reads.
        home: Where that is, if it ever ran.
    """
    inputs = stored_inputs(graph, dataset.name)
    if len(inputs) != 1 or inputs[0] not in home.tables:
        return
    for key in dict.fromkeys(_keys(frame)):
        if (found := _most_frequent(home, inputs[0], key)) is None:
            continue
        value, share = found
        at = next((place for place, one in made if key in _keys(one)), dataset.at)
        yield fault(
            "SKEWED_KEY",
            at=at,
            dataset=dataset.name,
            reads=inputs[0],
            key=", ".join(f"{c} = {v!r}" for c, v in value.items()),
            columns=", ".join(repr(c) for c in value),
            share=share,
        )


def _keys(frame: DataFrame) -> Iterator[tuple[str, ...]]:
    """Return the plain columns of every aggregation whose rows are moved, without its windows.

    Rows that arrive together are mostly of one window, so a key has its share in each.
    """
    for node in nodes_of(frame):
        if node.nodeName() == "Aggregate":
            expressions = [str(each.toString()) for each in listed(node.aggregateExpressions())]
            columns = [c for c in listed(node.groupingExpressions()) if _is_column(c)]
            if columns and any(name in text for name in _MOVED_WHOLE for text in expressions):
                yield tuple(str(column.name()) for column in columns)


def _is_column(expression: Any) -> bool:
    is_window = str(expression.dataType().simpleString()) == _WINDOW
    return bool(expression.nodeName() == "AttributeReference") and not is_window


def _most_frequent(
    home: Home, name: str, key: Sequence[str]
) -> tuple[dict[str, object], float] | None:
    """Return the most frequent key of the newest rows, and its share; None if that is small."""
    path = home.table(name)
    actions: Any = DeltaTable(str(path)).get_add_actions(flatten=True)
    stamps = [value.as_py() for value in actions.column("modification_time")]
    files = [unquote(value.as_py()) for value in actions.column("path")]
    newest = sorted(zip(stamps, files, strict=True))[-_FILES:]
    columns = list(key)
    parts = [pq.ParquetFile(path / file).read(columns=columns) for _, file in newest]
    rows = pa.concat_tables(parts, promote_options="default") if parts else None
    # Files have neither a column that the table is partitioned by, nor one of the answer alone.
    if rows is None or not {*columns} <= {*rows.column_names} or rows.num_rows < _FEWEST_ROWS:
        return None
    counted = (
        rows.group_by(columns).aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
    )
    first = counted.slice(0, 1).to_pylist()[0]
    share = first.pop("count_all") / rows.num_rows
    return (first, share) if share >= _SHARE else None
