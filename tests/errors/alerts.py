"""Errors of alerts, as they are met."""

from __future__ import annotations

from millstream.errors import (
    CooldownTimeError,
    DestinationRefusedError,
    Location,
    NotADestinationError,
    UnknownAlertError,
    UnknownNoticeError,
)

AT = Location("app.py", 11)
COLUMNS = ("order", "since")
SAMPLES = (
    NotADestinationError("unpicked", got="str", at=AT),
    DestinationRefusedError(
        "url",
        "***",
        alert="unpicked",
        expected="an address that begins with https:// or http://",
        at=AT,
    ),
    CooldownTimeError("unpicked", column="at", got=None, columns=COLUMNS, at=AT),
    CooldownTimeError("unpicked", column="since", got="string", columns=COLUMNS, at=AT),
    CooldownTimeError("unpicked", column=None, got=None, columns=COLUMNS, at=AT),
    UnknownAlertError("unpickt", known=("unpicked",)),
    UnknownNoticeError("0b1c"),
)
