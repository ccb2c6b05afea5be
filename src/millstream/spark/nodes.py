"""The plan of a DataFrame as Spark's analyser left it, and what it says of a stream."""

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
    """Give every node of the plan, each before those that it reads."""
    todo: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while todo:
        node = todo.pop()
        yield node
        todo += listed(node.children())


def listed(sequence: Any) -> list[Any]:
    """Give the elements of a sequence of Scala's."""
    return [sequence.apply(n) for n in range(sequence.size())]


def watermarks_of(frame: DataFrame) -> set[tuple[str, timedelta]]:
    """Tell every watermark that a stream is held to: its column and its delay."""
    found: set[tuple[str, timedelta]] = set()
    for node in nodes_of(frame):
        if node.nodeName() == "EventTimeWatermark":
            delay_ms = int(node.delay().extractAsDuration().toMillis())
            found.add((str(node.eventTime().name()), timedelta(milliseconds=delay_ms)))
    return found


def answers_at_once(frame: DataFrame, output_mode: str) -> bool:
    """Tell whether only rows bring an answer, so that a batch without any has nothing to give.

    Of what is not known here, such as a join of two streams, time alone may bring some.
    """
    known = _ROW_BY_ROW | _ONCE_EACH | (_TOTALS if output_mode == "update" else frozenset())
    return all(node.nodeName() in known for node in nodes_of(frame) if node.isStreaming())


def held_back_by(frame: DataFrame) -> list[str]:
    """Name the operators of a stream that give rows other than in the batch that reads them."""
    passing = _ROW_BY_ROW | _ONCE_EACH
    streaming = (node for node in nodes_of(frame) if node.isStreaming())
    return [
        str(node.nodeName())
        for node in streaming
        if node.nodeName() not in passing and not _joins_one_stream(node)
    ]


def has_windows(frame: DataFrame) -> bool:
    """Tell whether rows are grouped by windows of time anywhere on the way to an answer."""
    return any(
        _WINDOW in str(expression.toString())
        for node in nodes_of(frame)
        if node.nodeName() == "Aggregate"
        for expression in listed(node.groupingExpressions())
    )


def leaves_of(frame: DataFrame) -> set[str]:
    """Name the columns of all that a plan reads from, as no other plan has them."""
    leaves = (node for node in nodes_of(frame) if not node.children().size())
    return {str(c.exprId().toString()) for leaf in leaves for c in listed(leaf.output())}


def _joins_one_stream(node: Any) -> bool:
    sides = listed(node.children()) if node.nodeName() == "Join" else []
    return any(not side.isStreaming() for side in sides)
