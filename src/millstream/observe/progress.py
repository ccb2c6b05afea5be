"""Spark's report on a batch, typed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

_DELTA = re.compile(r"DeltaSource\[.*/tables/([^/\]]+)/?\]")


@dataclass(frozen=True, slots=True)
class Progress:
    """The last batch of a query."""

    batch: int
    input_rows: int
    input_rate: float
    processed_rate: float
    duration_ms: int
    watermark: str | None
    dropped_by_watermark: int
    output_rows: int = 0
    """As the sink counts; 0 where it does not."""
    observed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Counts by verdict of each live source."""
    began: str = ""
    phases: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds by phase, by Spark's names, without those that took none."""
    state_rows: int | None = None
    """None if the query keeps no state."""
    state_bytes: int | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    """The last version read of each table of a home."""
    unread: int | None = None
    """Records that its other sources had and that it did not read; None if unknown."""

    @staticmethod
    def of(reported: Mapping[str, Any]) -> Progress:
        """Read Spark's progress report."""
        states = reported.get("stateOperators") or ()
        durations = reported.get("durationMs") or {}
        sources = reported.get("sources") or ()
        unread = [rows for source in sources if (rows := _unread(source)) is not None]
        return Progress(
            batch=reported["batchId"],
            input_rows=reported.get("numInputRows") or 0,
            input_rate=reported.get("inputRowsPerSecond") or 0.0,
            processed_rate=reported.get("processedRowsPerSecond") or 0.0,
            duration_ms=durations.get("triggerExecution", 0),
            watermark=(reported.get("eventTime") or {}).get("watermark"),
            dropped_by_watermark=sum(s.get("numRowsDroppedByWatermark") or 0 for s in states),
            output_rows=max((reported.get("sink") or {}).get("numOutputRows") or 0, 0),
            observed=_observed(reported.get("observedMetrics") or {}),
            began=reported.get("timestamp") or "",
            phases={name: ms for name, ms in durations.items() if ms and name != _WHOLE},
            state_rows=sum(s.get("numRowsTotal") or 0 for s in states) if states else None,
            state_bytes=sum(s.get("memoryUsedBytes") or 0 for s in states) if states else None,
            versions=dict(read for source in sources if (read := _version(source))),
            unread=sum(unread) if unread else None,
        )

    @property
    def is_batch(self) -> bool:
        """Whether it reports on a batch, not on a look that found nothing to read."""
        return "addBatch" in self.phases

    @property
    def watermark_at(self) -> datetime | None:
        """The watermark as a moment; None if there is none yet."""
        found = datetime.fromisoformat(self.watermark) if self.watermark else None
        return found if found and found.timestamp() > 0 else None

    @property
    def began_at(self) -> datetime | None:
        """When the batch began."""
        return datetime.fromisoformat(self.began).astimezone(UTC) if self.began else None


_WHOLE = "triggerExecution"


def _observed(metrics: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    found = {}
    for name, row in metrics.items():
        values = row.asDict() if hasattr(row, "asDict") else row
        if isinstance(values, dict):
            found[name] = {key: int(count or 0) for key, count in values.items()}
    return found


def _version(source: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return which table of a home a source is, and the last version that it has read whole."""
    match _DELTA.match(str(source.get("description"))), source.get("endOffset"):
        case re.Match() as found, {"reservoirVersion": int(next_), **rest}:
            return unquote(found[1]), -1 if rest.get("isStartingVersion") else next_ - 1
    return None


def _unread(source: Mapping[str, Any]) -> int | None:
    """Return how many records a source has that are not read, if its offsets are numbers."""
    end, latest = source.get("endOffset"), source.get("latestOffset")
    if _DELTA.match(str(source.get("description"))) or latest is None or end is None:
        return None
    if end == latest:
        return 0
    read, there = _numbers(end), _numbers(latest)
    if read.keys() != there.keys() or not read:
        return None
    return sum(max(there[name] - read[name], 0) for name in read)


def _numbers(offset: object) -> dict[tuple[str, str], int]:
    """Return the offsets of a topic's partitions, as Kafka's sources write them."""
    if not isinstance(offset, dict) or not all(isinstance(p, dict) for p in offset.values()):
        return {}
    parts = ((t, p, n) for t, partitions in offset.items() for p, n in partitions.items())
    return {(topic, part): number for topic, part, number in parts if isinstance(number, int)}
