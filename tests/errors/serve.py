"""Errors of served answers, as they are met."""

from __future__ import annotations

from millstream.errors import (
    Location,
    NotASinkError,
    SameSinksError,
    ServedChangesError,
    ServedInputError,
    SeveralSinksError,
    SinkFunctionError,
    SinkRaisedError,
)

SAMPLES = (
    NotASinkError("latest", got="str", at=Location("app.py", 11)),
    SeveralSinksError("latest", sinks=2, at=Location("app.py", 11)),
    ServedInputError("again", reads="latest", at=Location("app.py", 16)),
    ServedChangesError(
        "latest",
        reads="sold",
        reads_mode="update",
        why="in a mode that only adds",
        use="mode='update' with a key tells of changes; mode='complete' replaces all rows",
        at=Location("app.py", 19),
    ),
    SinkFunctionError(
        "latest",
        name="post",
        handed=("rows", "batch"),
        why="too many positional arguments",
        at=Location("app.py", 15),
    ),
    SameSinksError("latest", name="post", at=Location("app.py", 15)),
    SinkRaisedError(
        "latest", name="post", cause="ValueError: no such shelf", at=Location("app.py", 15)
    ),
)
