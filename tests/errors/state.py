"""Errors of keyed state, as they are met."""

from __future__ import annotations

from millstream.errors import (
    EmittedRowError,
    Location,
    StateChangedError,
    StatefulColumnError,
    StatefulParametersError,
    StatefulRaisedError,
    StatefulRefusedError,
    StatefulTimeError,
    StatefulUnboundedError,
    StateKeptForeverError,
    StateValueError,
    TimerRefusedError,
    UnknownStateError,
)

AT = Location("app.py", 6)
EMITS = "emits='user STRING, at TIMESTAMP'"
SAMPLES = (
    StatefulRefusedError("presence", "length", got="timeout='soon'", at=AT),
    StatefulRefusedError("presence", "processing_order", at=AT),
    StatefulParametersError("presence", parameters=["user", "rows"], at=AT),
    StatefulColumnError(
        "presence",
        "usr",
        why="which the rows do not have",
        columns=["user", "at", "page"],
        at=AT,
    ),
    StatefulTimeError("presence", ["at", "booked_at"], at=AT),
    StatefulUnboundedError("presence", "at", at=AT),
    StateKeptForeverError("presence", dataset="changes", at=AT),
    EmittedRowError(
        "presence",
        row="('ann', '12:00')",
        why="Expected `datetime | null`, got `str` - at `at`",
        emits=EMITS,
        at=AT,
    ),
    StateValueError(
        "presence",
        why="Expected `int | null`, got `str` - at `n`",
        state="state='n BIGINT'",
        at=AT,
    ),
    TimerRefusedError(
        "presence",
        "away",
        why="datetime.datetime(2026, 1, 1, 12, 0) is no time with a time zone",
        at=AT,
    ),
    StatefulRaisedError(
        "presence",
        cause="KeyError: 'mobile'",
        row='{"user":"ann","at":"2026-01-01T12:00:00.000000Z","page":"/"}',
        at=AT,
    ),
    StateChangedError(
        "presence",
        query="changes",
        changes=["'n' of the state was BIGINT and is INT", "the state has 'm' anew"],
        at=Location("app.py", 18),
    ),
    UnknownStateError("presense", known=["changes.presence"]),
)
