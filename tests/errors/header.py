"""Errors of SQL files, as they are met."""

from __future__ import annotations

from millstream.errors import (
    HeaderLineError,
    Location,
    NoSqlFilesError,
    NotATableError,
    OptionMissingError,
    OptionTwiceError,
    OptionValueError,
    SourceQueryError,
)

TICKS = "shop/ticks.sql"
SAMPLES = (
    HeaderLineError("-- watermark 10 minutes", dataset="ticks", at=Location(TICKS, 2)),
    NotATableError("key", view="odd", at=Location("shop/odd.sql", 1)),
    NoSqlFilesError("queries", at=Location("app.py", 11)),
    OptionMissingError(
        "topic", source="orders", connector="kafka", at=Location("shop/orders.sql", 1)
    ),
    OptionTwiceError(
        "rows_per_second", dataset="ticks", first=Location(TICKS, 2), at=Location(TICKS, 3)
    ),
    SourceQueryError("ticks", at=Location(TICKS, 3)),
    OptionValueError(
        "rows_per_second",
        "many",
        dataset="ticks",
        expected="a whole number",
        at=Location(TICKS, 2),
    ),
)
