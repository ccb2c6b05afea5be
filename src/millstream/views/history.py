"""The history of a dataset, as charts draw it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from millstream.observe.measure import failed_rows
from millstream.views.progress import set_aside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.observe.history import History
    from millstream.observe.record import BatchRecord, EventRecord

_POINTS = 300
_EVENTS = 200
_BARS = " ▁▂▃▄▅▆▇█"
_SPARKS = 15


@dataclass(frozen=True, slots=True)
class PointView:
    """A batch of a dataset, or several of them where they are too many to draw."""

    at: datetime
    """When the last of them was committed."""
    batch: int
    batches: int
    input_rate: float | None
    """Rows a second since the point before; None of the first point."""
    output_rate: float | None
    duration_ms: float | None
    """Of a batch, on average."""
    phases: Mapping[str, float]
    """The parts of it, by Spark's names."""
    behind_rows: int | None
    behind_s: float | None
    watermark: datetime | None
    complete_to: datetime | None
    greatest_event_time: datetime | None
    event_time_delay_s: float | None
    """How far the greatest event time was behind the clock."""
    state_rows: int | None
    state_bytes: int | None
    input: int
    output: int
    verdicts: Mapping[str, int]
    """Rows that were set aside, by reason."""
    rules: Mapping[str, int]
    """Rows that broke a rule, by rule."""
    failed: int

    @staticmethod
    def of(record: BatchRecord, before: datetime | None) -> PointView:
        """Show a record; rates are measured from the one before."""
        passed = (record.at - before).total_seconds() if before else 0.0
        greatest = record.greatest_event_time
        timed = record.duration_ms is not None
        rule = "rule: "
        return PointView(
            record.at,
            record.batch,
            record.batches,
            record.input / passed if passed > 0 else None,
            record.output / passed if passed > 0 else None,
            (record.duration_ms or 0) / record.batches if timed else None,
            {name: ms / record.batches for name, ms in record.phases.items()},
            record.behind_rows,
            record.behind_s,
            record.watermark,
            record.complete_to,
            greatest,
            (record.at - greatest).total_seconds() if greatest else None,
            record.state_rows,
            record.state_bytes,
            record.input,
            record.output,
            set_aside(record.counts),
            {
                name.removeprefix(rule): rows
                for name, rows in record.counts.items()
                if name.startswith(rule)
            },
            failed_rows(record.counts),
        )


@dataclass(frozen=True, slots=True)
class SeriesView:
    """A dataset over a range of time."""

    name: str
    since: datetime
    until: datetime
    points: tuple[PointView, ...]
    events: tuple[EventRecord, ...]
    """What happened to it, the latest first."""

    @staticmethod
    def of(
        history: History,
        name: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        most: int = _POINTS,
    ) -> SeriesView:
        """Read a range, by default the last hour; at most so many points."""
        until = until or datetime.now(UTC)
        since = since or until - timedelta(hours=1)
        records = history.batches(name, since=since, until=until, most=most)
        before = (None, *(record.at for record in records))
        events = history.events(dataset=name, since=since, most=_EVENTS)
        return SeriesView(
            name,
            since,
            until,
            tuple(map(PointView.of, records, before)),
            tuple(event for event in events if event.at <= until),
        )


def sparkline(numbers: Sequence[int]) -> str:
    """Draw numbers as bars, the greatest full; nothing if all are zero.

    >>> sparkline([0, 1, 4, 8])
    ' ▁▄█'
    >>> sparkline([0, 0])
    ''
    """
    last = numbers[-_SPARKS:]
    greatest = max(last, default=0)
    if greatest == 0:
        return ""
    # What is not nothing is to be seen, however small.
    return "".join(_BARS[-(-number * (len(_BARS) - 1) // greatest)] for number in last)
