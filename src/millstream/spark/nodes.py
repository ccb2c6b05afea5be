"""The analyzed plan of a DataFrame, and what it shows about a stream."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_ROW_BY_ROW = frozenset(
    [
        "Project",
        "Filter",
        "SubqueryAlias",
        "View",
        "EventTimeWatermark",
        "Union",
        "Generate",
        "Expand",
        "ResolvedHint",
        "StreamingRelation",
        "StreamingRelationV2",
    ]
)
_ONCE_EACH = frozenset(("Deduplicate", "DeduplicateWithinWatermark"))
_WINDOW = "window#"
"""How Spark writes a column that it made for a window, or for a session."""
_TOTALS = frozenset(("Aggregate", "Distinct"))


def nodes_of(frame: DataFrame) -> Iterator[Any]:
    """Yield every node of the plan, each before those that it reads."""
    todo: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while todo:
        node = todo.pop()
        yield node
        todo += listed(node.children())


def parts_of(expression: Any) -> Iterator[Any]:
    """Yield every part of an expression, each before its own parts."""
    todo: list[Any] = [expression]
    while todo:
        part = todo.pop()
        yield part
        todo += listed(part.children())


def listed(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence."""
    return [sequence.apply(n) for n in range(sequence.size())]


def watermarks_of(frame: DataFrame) -> set[tuple[str, timedelta]]:
    """Return every watermark of a stream: its column and its delay."""
    found: set[tuple[str, timedelta]] = set()
    for node in nodes_of(frame):
        if node.nodeName() == "EventTimeWatermark":
            delay_ms = int(node.delay().extractAsDuration().toMillis())
            found.add((str(node.eventTime().name()), timedelta(milliseconds=delay_ms)))
    return found


def answers_at_once(frame: DataFrame, output_mode: str) -> bool:
    """Return whether only rows change the answer, so that an empty batch has no effect.

    For operators not listed here, such as a join of two streams, time alone may change it.
    """
    known = _ROW_BY_ROW | _ONCE_EACH | (_TOTALS if output_mode == "update" else frozenset())
    return all(node.nodeName() in known for node in nodes_of(frame) if node.isStreaming())


def held_back_by(frame: DataFrame) -> list[str]:
    """Name the operators of a stream that emit rows in a later batch than they read them."""
    passing = _ROW_BY_ROW | _ONCE_EACH
    streaming = (node for node in nodes_of(frame) if node.isStreaming())
    return [
        str(node.nodeName())
        for node in streaming
        if node.nodeName() not in passing and not _joins_one_stream(node)
    ]


def has_windows(frame: DataFrame) -> bool:
    """Return whether any aggregation of the plan groups by windows of time."""
    return any(
        _WINDOW in str(expression.toString())
        for node in nodes_of(frame)
        if node.nodeName() == "Aggregate"
        for expression in listed(node.groupingExpressions())
    )


def streams_of(frame: DataFrame) -> list[str | None]:
    """Return the paths that a stream reads, as Spark orders their offsets in a checkpoint.

    A stream that is read twice is there twice. None stands for a source without a path, such as a
    topic.
    """
    leaves = listed(frame._jdf.queryExecution().analyzed().collectLeaves())
    return [_path_of(leaf) for leaf in leaves if leaf.isStreaming()]


def _path_of(leaf: Any) -> str | None:
    if leaf.nodeName() != "StreamingRelation":
        return None
    path = leaf.dataSource().options().get("path")
    return str(path.get()) if path.isDefined() else None


def leaves_of(frame: DataFrame) -> set[str]:
    """Return the unique ids of the columns of all inputs of a plan."""
    leaves = (node for node in nodes_of(frame) if not node.children().size())
    return {str(c.exprId().toString()) for leaf in leaves for c in listed(leaf.output())}


def _joins_one_stream(node: Any) -> bool:
    sides = listed(node.children()) if node.nodeName() == "Join" else []
    return any(not side.isStreaming() for side in sides)
