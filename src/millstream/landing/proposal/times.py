"""Which columns of a sample are times, how they are written, and which is the event time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.landing.decode import read_times
from millstream.landing.proposal.proposal import quoted
from millstream.model.data_type import Atom
from millstream.model.duration import to_text
from millstream.model.time_format import ISO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TIMES = (
    *("at", "event_time", "timestamp", "ts", "time", "occurred_at", "created_at", "datetime"),
    *("date_time", "when", "epoch", "date", "day"),
)
"""Names that times usually have, the most usual of event times first."""
_EPOCHS = {"epoch_s": 1.0, "epoch_ms": 1e3, "epoch_us": 1e6, "epoch_ns": 1e9}
_EARLIEST_S, _LATEST_S = 1e9, 4e9
"""Between them, a number of a column that is called a time is one: from 2001 to 2096."""
_EXPRESSIONS = {
    "epoch_s": "timestamp_seconds",
    "epoch_ms": "timestamp_millis",
    "epoch_us": "timestamp_micros",
}
_DAYS = ("dd/MM/yyyy", "MM/dd/yyyy", "dd.MM.yyyy", "dd-MM-yyyy", "yyyy/MM/dd", "dd-MMM-yyyy")
_MOMENTS = (
    *("yyyy-MM-dd HH:mm:ss,SSS", "dd/MMM/yyyy:HH:mm:ss Z", "yyyyMMdd'T'HHmmss[.SSS][XX]"),
    *("yyyy-MM-dd HH:mm:ss[.SSSSSSSSS] Z", "EEE, dd MMM yyyy HH:mm:ss Z"),
    *("EEE, dd MMM yyyy HH:mm:ss VV", "EEE MMM dd HH:mm:ss yyyy", "EEE MMM dd HH:mm:ss VV yyyy"),
    *(f"{day} {clock}" for day in _DAYS for clock in ("HH:mm:ss", "HH:mm", "HH:mm:ss.SSS")),
    *(f"{day} {clock}" for day in _DAYS for clock in ("hh:mm:ss a", "hh:mm a")),
    *("dd MMM yyyy HH:mm:ss", "MMM dd, yyyy HH:mm:ss", "MMM dd, yyyy hh:mm:ss a"),
)
_MOST_FORMATS, _FEW = 3, 20
_DELAYS = tuple(
    timedelta(minutes=n) for n in (10, 30, 60, 180, 360, 720, 24 * 60, 48 * 60, 7 * 24 * 60)
)


class Written(NamedTuple):
    """How the times of a column are written."""

    kind: str
    formats: tuple[str, ...]
    others: tuple[str, ...] = ()
    """What reads all of them as well, but as other times."""


def written_times(name: str, kind: str, values: Sequence[Any]) -> Written | None:
    """Find the formats in which all values of a column are times; None if it needs none."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    if rank(name) < len(_TIMES) and (epoch := _epoch(found)):
        return Written("TIMESTAMP", (epoch,))
    if not all(isinstance(value, str) for value in found):
        return None
    if kind in ("DATE", "TIMESTAMP") and not _unread(Atom[kind], ISO, found):
        return None
    return _patterns(Atom.TIMESTAMP, _MOMENTS, found) or _patterns(Atom.DATE, _DAYS, found)


def _epoch(values: Sequence[Any]) -> str | None:
    """Return in which unit numbers, or texts of numbers, count the time since 1970."""
    try:
        numbers = [float("x" if isinstance(value, bool) else value) for value in values]
    except (TypeError, ValueError):
        return None
    for epoch, scale in _EPOCHS.items():
        is_within = all(_EARLIEST_S * scale <= n < _LATEST_S * scale for n in numbers)
        if is_within and not _unread(Atom.TIMESTAMP, epoch, values):
            return epoch
    return None


def _patterns(kind: Atom, patterns: Sequence[str], values: Sequence[str]) -> Written | None:
    """Choose the pattern that reads most values, and the next for the rest, until none is left."""
    known = [ISO, *(form for pattern in patterns for form in (pattern, _short(pattern)))]
    few = values[:_FEW]
    known = [form for form in dict.fromkeys(known) if len(_unread(kind, form, few)) < len(few)]
    left, chosen, others = list(values), list[str](), list[str]()
    while left and known and len(chosen) < _MOST_FORMATS:
        counts = {form: len(left) - len(_unread(kind, form, left)) for form in known}
        best = max(known, key=counts.__getitem__)
        if not counts[best]:
            return None
        if counts[best] == len(values):
            equal = [form for form in known if counts[form] == len(values)]
            others = [form for form in equal if _differ(kind, best, form, values)]
        chosen.append(best)
        left = _unread(kind, best, left)
    return Written(kind.name, tuple(chosen), tuple(others[:1])) if chosen and not left else None


def _short(pattern: str) -> str:
    """Write a pattern for numbers without leading zeros."""
    for long in ("dd", "HH", "hh"):
        pattern = pattern.replace(long, long[0])
    return pattern.replace("MMM", "\0").replace("MM", "M").replace("\0", "MMM")


def _unread(kind: Atom, form: str, values: Sequence[Any]) -> list[Any]:
    times = read_times(kind, (form,), values)
    return [value for value, time in zip(values, times, strict=True) if time is None]


def _differ(kind: Atom, one: str, other: str, values: Sequence[Any]) -> bool:
    return read_times(kind, (one,), values) != read_times(kind, (other,), values)


def event_time(
    columns: Mapping[str, str],
    formats: Mapping[str, Sequence[str]],
    values: Sequence[Mapping[str, Any]],
    *,
    typed: bool = False,
) -> tuple[str | dict[str, str] | None, str | None]:
    """Choose the event time of records, and a watermark that none of them is late for.

    Args:
        columns: With their types.
        formats: Of those that are written in their own way.
        values: Of the records.
        typed: Whether the records have types of their own, so that numbers stay what they are.
    """
    for name in sorted(columns, key=rank):
        found: list[Any] = [record.get(name) for record in values]
        if any(value is None for value in found) or not found:
            continue
        if columns[name] == "TIMESTAMP":
            form = formats.get(name, (ISO,))
            moments = found if typed else read_times(Atom.TIMESTAMP, form, found)
            return name, _watermark([moment for moment in moments if moment is not None])
        if not typed or columns[name] != "BIGINT":
            continue
        epoch = _epoch(found) if rank(name) < len(_TIMES) else None
        if epoch and (function := _EXPRESSIONS.get(epoch)):
            scale = _EPOCHS[epoch]
            column = "at" if "at" not in {c.lower() for c in columns} else "event_time"
            moments = [datetime.fromtimestamp(value / scale, UTC) for value in found]
            return {column: f"{function}({quoted(name)})"}, _watermark(moments)
    return None, None


def rank(name: str) -> int:
    """Return how usual a name is for an event time; the greatest number if it is not."""
    lower = name.lower()
    exact = [n for n, usual in enumerate(_TIMES) if lower == usual]
    ending = [n for n, usual in enumerate(_TIMES) if lower.endswith(f"_{usual}")]
    return min(exact or ending or [len(_TIMES)])


def _watermark(moments: Sequence[datetime]) -> str:
    """Return a delay that none of these moments is later than, in their order."""
    newest, latest = max(moments[:1], default=datetime.now(UTC)), timedelta()
    for moment in moments:
        newest = max(newest, moment)
        latest = max(latest, newest - moment)
    return to_text(next((delay for delay in _DELAYS if delay >= latest), _DELAYS[-1]))
