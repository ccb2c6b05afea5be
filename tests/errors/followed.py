"""Errors of sources that read a table of another app, as they are met."""

from __future__ import annotations

from millstream.errors import (
    ColumnsDifferError,
    EventTimeUnboundedError,
    FrontierPassedError,
    HistoryGoneError,
    Location,
    SourceHomeError,
    SourceTableError,
    TableChangesError,
)

AT = Location("app.py", 6)
HOME = "../shop/.millstream/shop"
SAMPLES = (
    SourceHomeError(HOME, source="orders", at=AT),
    SourceTableError("cleen", home=HOME, source="orders", known=["clean", "per_user"], at=AT),
    TableChangesError(
        "per_user", mode="update", home=HOME, source="orders", others=["clean"], at=AT
    ),
    ColumnsDifferError(
        "clean",
        wanted="user STRING",
        got="user STRING, at TIMESTAMP",
        home=HOME,
        source="orders",
        at=AT,
    ),
    EventTimeUnboundedError("at", source="orders", at=AT),
    HistoryGoneError(
        "clean",
        home=HOME,
        source="orders",
        version=41,
        why="it has no version after 7 now",
        at=AT,
    ),
    FrontierPassedError(
        "orders",
        watermark="2026-11-16 11:59:00+00:00",
        frontier="2026-11-16 11:50:00+00:00",
        at=AT,
    ),
)
