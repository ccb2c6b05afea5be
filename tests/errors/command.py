"""Errors of what was asked for, as they are met."""

from __future__ import annotations

from millstream.errors import (
    AlreadyRunningError,
    AppFileMissingError,
    ArgumentRefusedError,
    HomeEmptyError,
    HomeLockedError,
    HomeNewerError,
    HomeOtherAppError,
    NotEqualError,
    NothingLandedError,
    SqlFailedError,
    SqlFileAloneError,
    UnknownCodeError,
    UnknownSelectionError,
    UnknownTableError,
    UnknownVersionError,
)

HOME = "/srv/shop/.millstream/shop"
SAMPLES = (
    AppFileMissingError("shop.py", nearby=[]),
    AppFileMissingError("shop.py", nearby=["app.py", "shops.py"]),
    SqlFileAloneError("shop/ticks.sql", folder="shop"),
    HomeLockedError(HOME, pid=4711, host="mill", since="2026-05-01 12:00:41 UTC"),
    HomeNewerError(HOME, layout=2, known=1, written_by="0.3.0"),
    HomeOtherAppError(HOME, owner="shop", app="fleet"),
    HomeEmptyError("/srv/shop/nowhere"),
    NothingLandedError("daily", reads="paid"),
    UnknownTableError("by_itm", known=["by_item", "orders", "paid"]),
    UnknownVersionError("paid", version=40, latest=12),
    UnknownSelectionError("payd+", option="--select", declared=["orders", "paid", "daily"]),
    UnknownCodeError("UNKNOWN_INPT", known=["UNKNOWN_INPUT", "UNKNOWN_TABLE"]),
    ArgumentRefusedError("--for", "soon", expected='a length of time such as 60s or "5 minutes"'),
    ArgumentRefusedError("--into", "answers", expected="a folder that holds no tables"),
    SqlFailedError(
        cause='Binder Error: Referenced column "itm" not found in FROM clause!',
        known=["by_item", "orders", "paid"],
    ),
    AlreadyRunningError("shop"),
    NotEqualError(["paid", "daily"]),
)
