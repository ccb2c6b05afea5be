"""Errors of options, as they are met."""

from __future__ import annotations

from millstream.errors import (
    DurationRefusedError,
    FormatRefusedError,
    Location,
    OptionRefusedError,
    OptionUnusedError,
    ShareRefusedError,
    UnknownOptionError,
)

SAMPLES = (
    OptionRefusedError(
        "mode",
        "updat",
        dataset="paid",
        allowed=["append", "update", "complete"],
        at=Location("app.py", 11),
    ),
    OptionUnusedError(
        "csv.multiline",
        value=True,
        source="orders",
        by="format='json'",
        fix="set format='csv', or leave csv.multiline out",
        at=Location("app.py", 6),
    ),
    UnknownOptionError(
        "keys",
        dataset="paid",
        known=[
            "name",
            "mode",
            "key",
            "partition_by",
            "expect",
            "on_violation",
            "evolve",
            "trigger",
        ],
        at=Location("app.py", 11),
    ),
    DurationRefusedError("watermark", "ten minutes", dataset="orders", at=Location("app.py", 6)),
    DurationRefusedError("trigger", "hourly", dataset="paid", at=Location("app.py", 11)),
    FormatRefusedError(
        "jsn",
        source="orders",
        allowed=["json", "csv", "text", "parquet"],
        at=Location("app.py", 6),
    ),
    ShareRefusedError(
        "malformed", 5, source="orders", expected="a share from 0 to 1", at=Location("app.py", 6)
    ),
)
