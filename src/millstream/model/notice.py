"""One alert, as it is sent to a destination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class Notice:
    """One alert, as it is sent to a destination."""

    id: str
    """The same whenever it is sent."""
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


def worded(value: Any) -> str:
    """Write a value of a key for people: a text as it is, anything else as JSON.

    >>> worded("o1"), worded(True), worded(None)
    ('o1', 'true', 'null')
    """
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
