"""Errors of patterns, as they are met."""

from __future__ import annotations

from millstream.errors import (
    ConditionRefusedError,
    LaterStepError,
    Location,
    PatternColumnError,
    PatternRefusedError,
    PatternTimeError,
    SelectRefusedError,
    TimeBoundMissingError,
    UnboundedPatternError,
)

AT = Location("app.py", 5)
SAMPLES = (
    TimeBoundMissingError(None, at=AT),
    TimeBoundMissingError("soon", at=AT),
    PatternRefusedError("name_twice", got="small", at=Location("app.py", 8)),
    ConditionRefusedError(
        "big",
        "amount * 2",
        why="it is mul (amount * 2), not a condition",
        at=Location("app.py", 8),
    ),
    ConditionRefusedError(
        "big",
        "upper(small.country) <> 'FR'",
        why="UPPER(small.country) cannot be judged together with other steps",
        at=Location("app.py", 8),
    ),
    LaterStepError("small", refers_to="big", at=Location("app.py", 7)),
    SelectRefusedError(
        "card, sum(probe.amount)", why="SUM(probe.amount) has no name", at=Location("app.py", 21)
    ),
    PatternColumnError(
        "key",
        "crad",
        why="which the rows do not have",
        columns=["card", "at", "amount"],
        at=AT,
    ),
    PatternTimeError(["at", "booked_at"], at=AT),
    UnboundedPatternError("at", at=AT),
)
