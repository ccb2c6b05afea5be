"""Errors of names, as they are met."""

from __future__ import annotations

from millstream.errors import (
    CycleError,
    DuplicateNameError,
    EmptyAppError,
    FaultsError,
    Location,
    NameRefusedError,
    NoAppError,
    NoInputError,
    OptionRefusedError,
    SqlRefusedError,
    TwoAppsError,
    UnknownInputError,
)

SAMPLES = (
    NoAppError("app.py"),
    NoAppError("app.py", name="shp", names=["shop", "fleet"]),
    TwoAppsError("app.py", names=["shop", "fleet"]),
    EmptyAppError("shop"),
    NameRefusedError("Orders-2026", at=Location("app.py", 6)),
    DuplicateNameError("orders", first=Location("app.py", 6), at=Location("app.py", 11)),
    UnknownInputError(
        "ordrs", dataset="paid", declared=["orders", "paid"], at=Location("app.py", 11)
    ),
    CycleError(["paid", "shipped", "paid"], at=Location("app.py", 11)),
    NoInputError("paid", at=Location("app.py", 11)),
    SqlRefusedError("paid", why="got DELETE", at=Location("app.py", 11)),
    FaultsError(
        [
            UnknownInputError(
                "ordrs",
                dataset="paid",
                declared=["orders", "paid", "daily"],
                at=Location("app.py", 11),
            ),
            OptionRefusedError(
                "mode",
                "updat",
                dataset="daily",
                allowed=["append", "update", "complete"],
                at=Location("app.py", 12),
            ),
        ]
    ),
)
