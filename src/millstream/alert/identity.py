"""Which rows are the same alert: the key by which a receiver detects duplicates.

The key is made of the content of the row, not of when or in which batch it came: a replay, a
recomputed home and a repeated delivery all send the same alert under the same key.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.model.duration import UNIX_EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ID_LENGTH = 32


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row of an outbox, before it has its id."""

    key: str
    event_time: str | None
    row: str
    content: str
    """A hash of the row, whatever the order of its columns."""
    slot: int | None
    """The cooldown window it is in; None if there is no cooldown."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two rows of one alert the same alert.

    Event time is divided into windows as long as the cooldown, from 1970 on. Rows with one key in
    one window are one alert, whichever of them comes first; so which alerts there are does not
    depend on the order of arrival, on batches or on restarts. Without a cooldown every row is an
    alert of its own, and equal rows are numbered.
    """

    app: str
    alert: str
    key: tuple[str, ...] = ()
    cooldown: timedelta | None = None
    event_time: str | None = None

    def entries(self, rows: Sequence[Mapping[str, Any]]) -> list[OutboxRow]:
        """Read rows."""
        return [self._entry(row) for row in rows]

    def id_of(self, entry: OutboxRow, number: int) -> str:
        """Return the id of a row; `number` counts equal rows."""
        if entry.slot is not None:
            return _digest(self.app, self.alert, entry.key, entry.slot)
        return _digest(self.app, self.alert, entry.content, number)

    def _entry(self, raw: Mapping[str, Any]) -> OutboxRow:
        row = _plain(raw)
        moment = _value(row, self.event_time) if self.event_time else None
        is_known = isinstance(moment, datetime)
        slot = None
        if is_known and self.cooldown:
            slot = (_aware(moment) - UNIX_EPOCH) // self.cooldown
        return OutboxRow(
            _json({name: row[name] for name in self.key}),
            _aware(moment).isoformat() if is_known else None,
            _json(row),
            hashlib.sha256(msgspec.json.encode(row, enc_hook=str, order="sorted")).hexdigest(),
            slot,
        )


def matches_text(value: Any, text: str) -> bool:
    """Return whether a typed text means a value of a key.

    >>> matches_text(True, "true"), matches_text(1.5, "1.50"), matches_text("1.5", "1.50")
    (True, True, False)
    >>> matches_text(1, "true")
    False
    """
    if str(value) == text or isinstance(value, str):
        return str(value) == text
    try:
        meant = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return bool(meant == value) and isinstance(meant, bool) == isinstance(value, bool)


def _value(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if value is not None else None
    return value


def _plain(value: Any) -> Any:
    """Replace numbers that JSON lacks by their names, as in files and topics.

    >>> _plain({"n": float("nan"), "of": [float("-inf"), 1.5]})
    {'n': 'NaN', 'of': ['-Infinity', 1.5]}
    """
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value


def _aware(moment: Any) -> datetime:
    time: datetime = moment
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _json(row: Mapping[str, Any]) -> str:
    return msgspec.json.encode(row, enc_hook=str).decode()


def _digest(*parts: str | int) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:_ID_LENGTH]
