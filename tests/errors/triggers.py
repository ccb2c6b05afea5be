"""Errors of triggers, as they are met."""

from __future__ import annotations

from millstream.errors import (
    Location,
    TaskSlotsError,
    TriggerInputError,
    TriggerModeError,
    TriggerOperatorError,
    TriggerSinkError,
    TriggerTargetError,
)

AT = Location("app.py", 11)
SAMPLES = (
    TriggerTargetError("orders", kind="source", trigger="realtime", at=Location("app.py", 6)),
    TriggerTargetError("sold", kind="table", trigger="continuous 1 second", at=AT),
    TriggerInputError(
        "latest",
        trigger="realtime",
        reads="orders",
        why="which is landed in batches",
        instead="declare 'orders' with live=True",
        at=AT,
    ),
    TriggerInputError(
        "latest",
        trigger="realtime",
        reads="ticks",
        why="which ms.Rate gives in batches",
        instead="read it from ms.Kafka",
        at=AT,
    ),
    TriggerSinkError(
        "latest",
        trigger="realtime",
        sink="Siren",
        can=["ms.Kafka", "ms.Console"],
        at=Location("app.py", 18),
    ),
    TriggerModeError("latest", trigger="realtime", mode="append", at=AT),
    TriggerOperatorError(
        "sold",
        trigger="realtime",
        operator="an aggregation",
        instead="leave it to whoever reads the topic",
        at=Location("app.py", 15),
    ),
    TaskSlotsError(["latest"], wanted=3, slots=2, master="local[2]"),
)
