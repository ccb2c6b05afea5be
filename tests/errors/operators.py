"""Errors of operators, as they are met."""

from __future__ import annotations

from millstream.errors import (
    EventTimeUnknownError,
    JoinKeyTypesError,
    JoinSidesError,
    Location,
    NoWatermarkError,
    OperatorColumnError,
    OperatorOptionError,
    ReferenceColumnsError,
    ReferenceUnreadableError,
)

AT = Location("app.py", 18)
JOIN = "ms.join_within"
SAMPLES = (
    OperatorOptionError(
        JOIN,
        "within",
        None,
        why="every row would be remembered for ever",
        instead='say how long, for instance within="1 hour"',
        at=AT,
    ),
    OperatorColumnError(
        JOIN,
        "adid",
        option="on",
        why="which the left rows do not have",
        columns=["ad", "at"],
        at=AT,
    ),
    EventTimeUnknownError(JOIN, "the left rows", ["at", "booked_at"], say='event_time="…"', at=AT),
    NoWatermarkError(JOIN, "the right rows", "at", at=AT),
    JoinKeyTypesError(JOIN, "ad", left="bigint", right="string", at=AT),
    JoinSidesError(
        JOIN,
        "right",
        instead="join it with Spark's own left.join(right, ...), or with ms.join_as_of",
        at=Location("app.py", 14),
    ),
    ReferenceUnreadableError(
        "products.csv",
        cause="AnalysisException: [PATH_NOT_FOUND] Path does not exist: file:…/products.csv. "
        "SQLSTATE: 42K03",
        at=Location("app.py", 13),
    ),
    ReferenceColumnsError(
        "products",
        before="struct<product:string,name:string>",
        now="struct<product:string>",
        at=Location("app.py", 13),
    ),
)
