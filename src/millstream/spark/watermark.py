"""The watermark of a running query, moved by what is known besides its rows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_NODE = "EventTimeWatermark"


def raise_watermark(query: StreamingQuery, to_ms: int) -> None:
    """Have the next batch of a query begin at a later watermark; never at an earlier one.

    Spark itself moves it by rows only. To be called while a batch runs: Spark then logs it as the
    outcome of that batch, and a restart finds it.
    """
    tracker: Any = query._jsq.streamingQuery().watermarkTracker()
    if int(tracker.currentWatermark()) < to_ms:
        tracker.setWatermark(to_ms)


def watermarks_of(frame: DataFrame) -> set[tuple[str, timedelta]]:
    """Tell every watermark that a stream is held to: its column and its delay."""
    found: set[tuple[str, timedelta]] = set()
    todo: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while todo:
        node = todo.pop()
        if node.nodeName() == _NODE:
            delay_ms = int(node.delay().extractAsDuration().toMillis())
            found.add((str(node.eventTime().name()), timedelta(milliseconds=delay_ms)))
        children = node.children()
        todo += [children.apply(n) for n in range(children.size())]
    return found
