"""Errors of time as users see them."""

from __future__ import annotations

from millstream.errors import (
    BacktestTimeError,
    IdleRefusedError,
    Location,
    NothingToBacktestError,
    RowsBehindError,
    SkewedKeyError,
    UnboundedStateError,
)

AT = Location("app.py", 6)
SAMPLES = (
    IdleRefusedError(
        "orders",
        idle="10 minutes",
        why="no watermark",
        instead='give event_time="at", watermark="10 minutes" too, or leave it out',
        at=AT,
    ),
    SkewedKeyError(
        "readers", reads="views", key={"page": "/"}, share=0.9, at=Location("app.py", 15)
    ),
    UnboundedStateError(
        "sold",
        operator="an aggregation",
        why="no column that it groups by is under a watermark, so every group is kept for ever",
        fix='give the source event_time="at", watermark="10 minutes", and group by '
        'F.window("at", …) too; or let it be, if groups are few',
        at=Location("app.py", 13),
    ),
    RowsBehindError("per_minute", rows=2, reads="visits", column="at", at=Location("app.py", 18)),
    NothingToBacktestError("orders", answers=("paid", "large")),
    BacktestTimeError("large", column="att", columns=("at", "paid_at")),
    BacktestTimeError("large", column="att", columns=()),
)
