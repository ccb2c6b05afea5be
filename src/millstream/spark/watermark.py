"""The watermark of a query: raised beyond what its rows show, and the effects of that."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millstream.spark.nodes import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_DROPPED = "numRowsDroppedByWatermark"
_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


def raise_watermark(query: StreamingQuery, to_ms: int) -> None:
    """Have the next batch of a query begin at a later watermark; never at an earlier one.

    Spark itself moves it by rows only. To be called while a batch runs: Spark then logs it as the
    outcome of that batch, and a restart finds it.
    """
    tracker: Any = query._jsq.streamingQuery().watermarkTracker()
    if int(tracker.currentWatermark()) < to_ms:
        tracker.setWatermark(to_ms)


def dropped_rows(query: StreamingQuery) -> int:
    """Count the rows that the batch under way has dropped as late, as far as it was computed."""
    todo: list[Any] = [query._jsq.streamingQuery().lastExecution().executedPlan()]
    rows = 0
    while todo:
        node = todo.pop()
        metrics = node.metrics()
        if metrics.contains(_DROPPED):
            rows += int(metrics.apply(_DROPPED).value())
        todo += listed(node.children())
    return rows


@contextmanager
def without_empty_batches(spark: SparkSession) -> Iterator[None]:
    """Start queries so that a moved watermark alone causes no batch.

    A query copies the settings of its session when it starts. State that the watermark has passed
    is then dropped by the next batch with rows.
    """
    before = spark.conf.get(_EMPTY_BATCHES, "true")
    assert before is not None
    spark.conf.set(_EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(_EMPTY_BATCHES, before)
