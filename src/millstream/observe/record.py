"""What history holds: batches, events and runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A committed batch of a dataset, or several of them rolled up."""

    dataset: str
    batch: int
    """The last one, if several are rolled up."""
    at: datetime
    """When it was committed."""
    run: int = 0
    """The run that committed it; 0 if that is not known."""
    batches: int = 1
    """How many are rolled up here; the counts and times below are their sums."""
    duration_ms: int | None = None
    """None if Spark has not reported on the batch."""
    phases: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds by phase, by Spark's names."""
    input: int = 0
    output: int = 0
    """Rows that were right (of a source) or written (of a table)."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows by verdict, and rows that broke a rule."""
    watermark: datetime | None = None
    complete_to: datetime | None = None
    greatest_event_time: datetime | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    behind_rows: int | None = None
    """Rows that were there to be read and were not yet, after the batch; None if unknown."""
    behind_s: float | None = None
    """How long the oldest of them had been there."""
    total: int = 0
    """Output rows of all batches so far, as the commit says."""
    read: Mapping[str, int] = field(default_factory=dict)
    """How many of the output rows of each table it reads it has read; where that is known."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something that happened to an app or to one of its datasets."""

    at: datetime
    kind: str
    dataset: str = ""
    """Empty if it concerns the whole app."""
    detail: str = ""
    run: int = 0
    code: str | None = None
    what: str | None = None
    fix: str | None = None
    file: str | None = None
    line: int | None = None
    id: int = 0
    """Its place in history; 0 before it is written."""


@dataclass(frozen=True, slots=True)
class SettingRecord:
    """A value that decided how a run behaved."""

    value: str
    """Concealed if it is secret."""
    origin: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of an app, from the lock on its home to its end."""

    id: int
    """The epoch of its driver."""
    started_at: datetime
    pid: int
    host: str
    version: str
    """Of Millstream."""
    app_hash: str
    """Of the app's source files."""
    git_commit: str | None = None
    settings: Mapping[str, SettingRecord] = field(default_factory=dict)
    ended_at: datetime | None = None
    """None while it runs, and of a run whose driver died."""
    outcome: str = ""
    """`stopped`, `finished`, `failed` or `overtaken`; empty while it runs or if its driver died."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What all batches of a dataset add up to since its history began."""

    batches: int = 0
    input: int = 0
    output: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    duration_ms: int = 0
    timed: int = 0
    """Batches whose duration is known."""
    within: tuple[int, ...] = ()
    """How many of them took at most each of `BOUNDS_S`."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """Failures after which the query was started again, by code."""

    def plus(self, record: BatchRecord) -> Totals:
        """Add a batch."""
        timed, within = self.timed, self.within or (0,) * len(BOUNDS_S)
        if record.duration_ms is not None:
            took_s, timed = record.duration_ms / 1000, timed + 1
            within = tuple(n + (took_s <= bound) for n, bound in zip(within, BOUNDS_S, strict=True))
        return replace(
            self,
            batches=self.batches + record.batches,
            input=self.input + record.input,
            output=self.output + record.output,
            counts=added(self.counts, record.counts),
            phases_ms=added(self.phases_ms, record.phases),
            duration_ms=self.duration_ms + (record.duration_ms or 0),
            timed=timed,
            within=within,
        )


BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The durations of batches that the histogram tells apart."""


def added(these: Mapping[str, int], those: Mapping[str, int]) -> dict[str, int]:
    """Add counts by name.

    >>> added({"ok": 3}, {"ok": 4, "late": 1})
    {'ok': 7, 'late': 1}
    """
    return {**these, **{name: these.get(name, 0) + count for name, count in those.items()}}


def rolled_up(records: Sequence[BatchRecord]) -> BatchRecord:
    """Roll up batches of one dataset, the earliest first: counts add up, the rest is the last's.

    Of what is behind, and of state, the greatest is kept, so that no peak is lost.
    """
    if len(records) == 1:
        return records[0]
    phases: dict[str, int] = {}
    counts: dict[str, int] = {}
    for record in records:
        phases, counts = added(phases, record.phases), added(counts, record.counts)
    durations = [r.duration_ms for r in records if r.duration_ms is not None]
    return replace(
        records[-1],
        batches=sum(r.batches for r in records),
        duration_ms=sum(durations) if durations else None,
        phases=phases,
        input=sum(r.input for r in records),
        output=sum(r.output for r in records),
        counts=counts,
        state_rows=_greatest(r.state_rows for r in records),
        state_bytes=_greatest(r.state_bytes for r in records),
        behind_rows=_greatest(r.behind_rows for r in records),
        behind_s=max((r.behind_s for r in records if r.behind_s is not None), default=None),
    )


def _greatest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


@dataclass(frozen=True, slots=True)
class Sums:
    """The rows of a dataset in one part of a time range."""

    at: datetime
    """When the part begins."""
    batches: int = 0
    input: int = 0
    output: int = 0
    behind_rows: int | None = None
    behind_s: float | None = None
