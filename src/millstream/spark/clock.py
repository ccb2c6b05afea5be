"""A virtual clock for Spark's queries: it moves only when a test advances it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.streaming.query import StreamingQuery

from millstream.model.duration import UNIX_EPOCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_MILLISECOND = timedelta(milliseconds=1)

# By whole names: asked for part by part, Java looks for every part in every jar.
_CLOCK = "org.apache.spark.util.ManualClock"
_TRIGGER = "org.apache.spark.sql.streaming.Trigger"
_SINK = "org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink"


class SteppedQuery(StreamingQuery):
    """A query that polls for rows during `processAllAvailable`, and not in between.

    Spark polls every few milliseconds, under a lock that `processAllAvailable` releases while it
    waits. The thread that started the query holds the lock otherwise, and must stop the query.
    """

    def __init__(self, started: Any) -> None:
        super().__init__(started)
        self._lock: Any = started.streamingQuery().awaitProgressLock()
        self._lock.lock()

    def stop(self) -> None:
        """Release the lock, then stop: the query could not end while it waits for the lock."""
        if self._lock.isHeldByCurrentThread():
            self._lock.unlock()
        super().stop()


class VirtualClock:
    """The time of a test: batches, processing-time timers and `current_timestamp()` follow it."""

    def __init__(self, spark: SparkSession, now: datetime) -> None:
        self._jvm = cast("Any", spark._jvm)
        self._manager: Any = spark._jsparkSession.sessionState().streamingQueryManager()
        started_at = (now - UNIX_EPOCH) // _MILLISECOND
        self._clock: Any = getattr(self._jvm, _CLOCK)(started_at)
        self._once: Any = getattr(self._jvm, _TRIGGER).AvailableNow()

    @property
    def now(self) -> datetime:
        """What time it is."""
        return UNIX_EPOCH + int(self._clock.getTimeMillis()) * _MILLISECOND

    def advance(self, by: timedelta) -> None:
        """Let time pass, all at once."""
        self._clock.advance(by // _MILLISECOND)

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start a foreachBatch query on this clock.

        Spark's public writer always takes the clock of the machine; its query manager takes any.
        """
        declared: Any = writer._jwrite
        frame, options = _field(declared, "ds"), _field(declared, "extraOptions")
        sink = getattr(self._jvm, _SINK)(_field(declared, "foreachBatchWriter"), frame.exprEnc())
        nothing, trigger = getattr(self._jvm, "scala.Option").empty(), _field(declared, "trigger")
        is_temporary, recovers = False, True
        query = self._manager.startQuery(
            options.get("queryName"),
            nothing,
            options.get("checkpointLocation"),
            frame,
            options.originalMap(),
            sink,
            _field(declared, "outputMode"),
            is_temporary,
            recovers,
            trigger,
            self._clock,
            nothing,
            nothing,
        )
        return StreamingQuery(query) if trigger.equals(self._once) else SteppedQuery(query)


def _field(holder: Any, name: str) -> Any:
    field = holder.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(holder)
