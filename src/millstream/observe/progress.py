"""What Spark says of a batch, typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    @staticmethod
    def of(spoken: Mapping[str, Any]) -> Progress:
        """Read Spark's progress report."""
        states = spoken.get("stateOperators") or ()
        return Progress(
            batch=spoken["batchId"],
            input_rows=spoken.get("numInputRows") or 0,
            input_rate=spoken.get("inputRowsPerSecond") or 0.0,
            processed_rate=spoken.get("processedRowsPerSecond") or 0.0,
            duration_ms=(spoken.get("durationMs") or {}).get("triggerExecution", 0),
            watermark=(spoken.get("eventTime") or {}).get("watermark"),
            dropped_by_watermark=sum(s.get("numRowsDroppedByWatermark") or 0 for s in states),
            output_rows=max((spoken.get("sink") or {}).get("numOutputRows") or 0, 0),
            observed=_observed(spoken.get("observedMetrics") or {}),
        )


def _observed(metrics: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    found = {}
    for name, row in metrics.items():
        values = row.asDict() if hasattr(row, "asDict") else row
        if isinstance(values, dict):
            found[name] = {key: int(count or 0) for key, count in values.items()}
    return found
