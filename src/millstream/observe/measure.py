"""How a dataset does: its rates, what it has yet to read and how many rows fail, from history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from millstream.observe.history import History
    from millstream.observe.record import BatchRecord

PARTS = 30
"""The parts of the recent past that are drawn."""
RECENT = timedelta(minutes=15)
_SHORTEST = timedelta(seconds=10)
_BATCHES = 3
"""Rates are measured over the time of so many batches, at least."""
_FAILED_WITHIN = timedelta(minutes=5)
_RULE = "rule: "


@dataclass(frozen=True, slots=True)
class Measure:
    """A dataset at a moment."""

    last: BatchRecord | None
    """Its last batch; None if it has had none."""
    input_rate: float | None = None
    """Rows a second; None if it has had no batch lately."""
    output_rate: float | None = None
    behind_rows: int | None = None
    """Rows that it could read and has not; None if that cannot be known."""
    behind_s: float | None = None
    """How long the oldest of them has been there."""
    left_s: float | None = None
    """How long it takes to read them at the rate of the last batches; None if that is not known."""
    recent_input: tuple[int, ...] = ()
    """Rows read in each part of the last minutes."""
    recent_behind: tuple[int | None, ...] = ()
    """What was behind at most in each of them."""


def measured(history: History, until: datetime) -> Mapping[str, Measure]:
    """Measure every dataset that has had a batch."""
    lasts = history.lasts()
    return {name: measure_of(history, lasts, name, until) for name in lasts}


def failed_share(history: History, dataset: str, until: datetime) -> float | None:
    """Return which share of the rows of the last minutes failed; None if there were none."""
    records = history.batches(dataset, since=until - _FAILED_WITHIN, until=until)
    read = sum(record.input for record in records)
    return sum(failed_rows(record.counts) for record in records) / read if read else None


def failed_rows(counts: Mapping[str, int]) -> int:
    """Count the rows that could not be read or broke a rule.

    >>> failed_rows({"ok": 7, "late": 1, "malformed": 2}), failed_rows({"rule: paid": 3})
    (2, 3)
    """
    kept_out = sum(counts.get(n, 0) for n in ("malformed", "rejected", "quarantined", "dropped"))
    return kept_out or max((n for name, n in counts.items() if name.startswith(_RULE)), default=0)


def measure_of(
    history: History, lasts: Mapping[str, BatchRecord], name: str, until: datetime
) -> Measure:
    """Measure a dataset; `lasts` are the last batches of all."""
    lag = lag_of(history, lasts, name, until)
    if lag.last is None:
        return lag
    sums = history.sums(name, since=until - RECENT, until=until, parts=PARTS)
    input_rate = output_rate = read_rate = None
    if batches := sum(part.batches for part in sums):
        first = next(part.at for part in sums if part.batches)
        window = min(max(_BATCHES * (until - first) / batches, _SHORTEST), RECENT)
        [now] = history.sums(name, since=until - window, until=until, parts=1)
        input_rate, output_rate = (
            rows / window.total_seconds() for rows in (now.input, now.output)
        )
        records = history.batches(name, since=until - window, until=until)
        read_rate = _read_rate(records) if lag.last.read else input_rate
    left = lag.behind_rows / read_rate if lag.behind_rows and read_rate else None
    return replace(
        lag,
        input_rate=input_rate,
        output_rate=output_rate,
        left_s=left,
        recent_input=tuple(part.input for part in sums),
        recent_behind=tuple(part.behind_rows for part in sums),
    )


def lag_of(
    history: History, lasts: Mapping[str, BatchRecord], name: str, until: datetime
) -> Measure:
    """Measure only what a dataset has yet to read, which is quick."""
    last = lasts.get(name)
    if last is None:
        return Measure(None)
    behind_rows, behind_s = _behind(history, lasts, last, until)
    return Measure(last, behind_rows=behind_rows, behind_s=behind_s)


def _read_rate(records: Sequence[BatchRecord]) -> float | None:
    """Return how many rows of its inputs a table reads in a second.

    What counts as its input are the rows of its answer: of windows, for instance, far fewer.
    """
    read = [(record.at, sum(record.read.values())) for record in records if record.read]
    if len(read) < 2:
        return None
    (since, before), (until, now) = read[0], read[-1]
    return (now - before) / max((until - since).total_seconds(), 0.001)


def _behind(
    history: History, lasts: Mapping[str, BatchRecord], last: BatchRecord, until: datetime
) -> tuple[int | None, float | None]:
    """Return how many rows a dataset has yet to read, and for how long they have been there."""
    known = {name: rows for name, rows in last.read.items() if name in lasts}
    if not known:
        return last.behind_rows, last.behind_s
    unread = {name: lasts[name].total - rows for name, rows in known.items()}
    behind = {name: rows for name, rows in unread.items() if rows > 0}
    if not behind:
        return 0, 0.0
    since = [history.first_beyond(name, known[name]) for name in behind]
    waits = [(until - at).total_seconds() for at in since if at is not None]
    return sum(behind.values()), max([*waits, 0.0])
