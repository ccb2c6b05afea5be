"""Records as rows of the history file, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from millstream.model.duration import UNIX_EPOCH
from millstream.observe.record import BatchRecord, EventRecord, RunRecord, SettingRecord, Totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BATCH_COLUMNS = (
    "at, batch, span, batches, input, output, duration_ms, behind_rows, behind_s, total, rest"
)
_OWN_COLUMNS = BATCH_COLUMNS.split(", ")
_REST = tuple(
    f.name for f in fields(BatchRecord) if f.name not in (*_OWN_COLUMNS, "dataset", "counts")
)
_TOTALS = tuple(f.name for f in fields(Totals))
_TIMES = ("watermark", "complete_to", "greatest_event_time")
EVENT_COLUMNS = "at, run, kind, dataset, detail, code, what, fix, file, line"
_LONGEST_TEXT = 2000

_MICROSECOND = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    """Count the microseconds since 1970."""
    return (at - UNIX_EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """Read microseconds since 1970."""
    return UNIX_EPOCH + us * _MICROSECOND


def batch_row(record: BatchRecord, span_s: int) -> tuple[Any, ...]:
    """Return the values of `BATCH_COLUMNS`."""
    rest: dict[str, Any] = {}
    for name in (*_REST, "counts"):
        value = getattr(record, name)
        if value not in (None, {}, 0):
            rest[name] = to_us(value) if name in _TIMES else value
    return (
        to_us(record.at),
        record.batch,
        span_s,
        record.batches,
        record.input,
        record.output,
        record.duration_ms,
        record.behind_rows,
        record.behind_s,
        record.total,
        _json(rest),
    )


def batch_of(dataset: str, row: Sequence[Any]) -> BatchRecord:
    """Read the values of `BATCH_COLUMNS`."""
    at, batch, _, batches, rows_in, rows_out, duration_ms, behind_rows, behind_s, total, rest = row
    record = BatchRecord(
        dataset,
        batch,
        from_us(at),
        batches=batches,
        input=rows_in,
        output=rows_out,
        duration_ms=duration_ms,
        behind_rows=behind_rows,
        behind_s=behind_s,
        total=total,
    )
    found: dict[str, Any] = json.loads(rest)
    found.update({name: from_us(found[name]) for name in _TIMES if name in found})
    return replace(record, **found)


def last_text(record: BatchRecord) -> str:
    """Write a batch as one text."""
    return _json(batch_row(record, 0))


def last_of(dataset: str, text: str) -> BatchRecord | None:
    """Read a batch from its text; None if there has been none."""
    row = json.loads(text)
    return batch_of(dataset, row) if row else None


def totals_text(totals: Totals) -> str:
    """Write totals as one text."""
    return _json({name: getattr(totals, name) for name in _TOTALS})


def totals_of(text: str) -> Totals:
    """Read totals from their text."""
    found = json.loads(text)
    return Totals(**{**found, "within": tuple(found["within"])})


def event_row(record: EventRecord) -> tuple[Any, ...]:
    """Return the values of `EVENT_COLUMNS`."""
    return (
        to_us(record.at),
        record.run,
        record.kind,
        *map(_text, (record.dataset, record.detail, record.code, record.what, record.fix)),
        _text(record.file),
        record.line,
    )


def _text(text: str | None) -> str | None:
    """Shorten a text, and replace what is no Unicode in it, as in the name of a file."""
    return text and text[:_LONGEST_TEXT].encode(errors="replace").decode()


def event_of(row: Sequence[Any]) -> EventRecord:
    """Read an id and the values of `EVENT_COLUMNS`."""
    id_, at, run, kind, dataset, detail, code, what, fix, file, line = row
    return EventRecord(from_us(at), kind, dataset, detail, run, code, what, fix, file, line, id_)


def run_row(record: RunRecord) -> tuple[Any, ...]:
    """Return the id, the start, the end and the rest of a run."""
    rest = asdict(record)
    for name in ("id", "started_at", "ended_at"):
        del rest[name]
    ended_at = to_us(record.ended_at) if record.ended_at else None
    return record.id, to_us(record.started_at), ended_at, _json(rest)


def run_of(row: Sequence[Any]) -> RunRecord:
    """Read the id, the start, the end and the rest of a run."""
    id_, started_at, ended_at, rest = row
    found = json.loads(rest)
    settings: Mapping[str, SettingRecord] = {
        name: SettingRecord(**setting) for name, setting in found.pop("settings").items()
    }
    ended = from_us(ended_at) if ended_at is not None else None
    return RunRecord(id_, from_us(started_at), settings=settings, ended_at=ended, **found)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
