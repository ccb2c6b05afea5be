"""What is told of one row, and the key by which whoever is told twice knows it again.

The key is made of what the row says, not of when or in which batch it came: a replay, a home
computed anew and a delivery that is repeated all tell the same alert under the same key.
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
class Notice:
    """One alert, as a destination is told of it."""

    id: str
    """The same whenever it is told."""
    app: str
    alert: str
    key: str
    """What the alert is about, as JSON."""
    event_time: str | None
    row: str
    """The row of the outbox, as JSON."""

    @property
    def body(self) -> bytes:
        """All of it, as JSON."""
        raw = msgspec.Raw
        return msgspec.json.encode(
            {
                "id": self.id,
                "app": self.app,
                "alert": self.alert,
                "key": raw(self.key.encode()),
                "event_time": self.event_time,
                "row": raw(self.row.encode()),
            }
        )

    @property
    def about(self) -> str:
        """What it is about, in a few words."""
        values = msgspec.json.decode(self.key).items()
        return " ".join(f"{name}={worded(value)}" for name, value in values)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of an outbox, before it has its id."""

    key: str
    event_time: str | None
    row: str
    content: str
    """What says the same is the same, in whatever order its columns are."""
    slot: int | None
    """Which stretch of the cooldown it is in; None if there is no cooldown."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two rows of one alert the same alert.

    Event time is cut into stretches as long as the cooldown, from 1970 on. Rows with one key in
    one stretch are one alert, whichever of them comes first; so which alerts there are does not
    depend on the order of arrival, on batches or on restarts. Without a cooldown every row is an
    alert of its own, and of rows that are alike each has its number.
    """

    app: str
    alert: str
    key: tuple[str, ...] = ()
    cooldown: timedelta | None = None
    event_time: str | None = None

    def entries(self, rows: Sequence[Mapping[str, Any]]) -> list[Entry]:
        """Read rows."""
        return [self._entry(row) for row in rows]

    def id_of(self, entry: Entry, number: int) -> str:
        """Give the id of a row; `number` counts those that are alike."""
        if entry.slot is not None:
            return _digest(self.app, self.alert, entry.key, entry.slot)
        return _digest(self.app, self.alert, entry.content, number)

    def _entry(self, given: Mapping[str, Any]) -> Entry:
        row = _plain(given)
        moment = _value(row, self.event_time) if self.event_time else None
        is_known = isinstance(moment, datetime)
        slot = None
        if is_known and self.cooldown:
            slot = (_aware(moment) - UNIX_EPOCH) // self.cooldown
        return Entry(
            _json({name: row[name] for name in self.key}),
            _aware(moment).isoformat() if is_known else None,
            _json(row),
            hashlib.sha256(msgspec.json.encode(row, enc_hook=str, order="sorted")).hexdigest(),
            slot,
        )


def worded(value: Any) -> str:
    """Write a value of a key for people: a text as it is, anything else as JSON.

    >>> worded("o1"), worded(True), worded(None)
    ('o1', 'true', 'null')
    """
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def is_meant(value: Any, said: str) -> bool:
    """Tell whether what someone has typed means a value of a key.

    >>> is_meant(True, "true"), is_meant(1.5, "1.50"), is_meant("1.5", "1.50"), is_meant(1, "true")
    (True, True, False, False)
    """
    if str(value) == said or isinstance(value, str):
        return str(value) == said
    try:
        meant = msgspec.json.decode(said)
    except msgspec.DecodeError:
        return False
    return bool(meant == value) and isinstance(meant, bool) == isinstance(value, bool)


def _value(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if value is not None else None
    return value


def _plain(value: Any) -> Any:
    """Give numbers that JSON does not have by name, as files and topics are told them.

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
    given: datetime = moment
    return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)


def _json(row: Mapping[str, Any]) -> str:
    return msgspec.json.encode(row, enc_hook=str).decode()


def _digest(*parts: str | int) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:_ID_LENGTH]
