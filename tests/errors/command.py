"""Errors of what was asked for, as they are met."""

from __future__ import annotations

from millstream.errors import (
    AlreadyRunningError,
    AppFileMissingError,
    AppNameRefusedError,
    ArgumentRefusedError,
    DriverElsewhereError,
    DriverForeignError,
    FolderTakenError,
    HomeEmptyError,
    HomeLockedError,
    HomeNewerError,
    HomeOtherAppError,
    NotEqualError,
    NothingLandedError,
    NothingSelectedError,
    SelectionWithoutAppError,
    SqlFailedError,
    UnknownCodeError,
    UnknownCommandError,
    UnknownDatasetError,
    UnknownFlagError,
    UnknownSelectionError,
    UnknownTableError,
    UnknownTemplateError,
    UnknownVersionError,
    UsageError,
)

HOME = "/srv/shop/.millstream/shop"
SAMPLES = (
    AppFileMissingError("shop.py", nearby=[]),
    AppFileMissingError("shop.py", nearby=["app.py", "shops.py"]),
    HomeLockedError(HOME, pid=4711, host="mill", since="2026-05-01 12:00:41 UTC"),
    HomeNewerError(HOME, layout=2, known=1, written_by="0.3.0"),
    HomeOtherAppError(HOME, owner="shop", app="fleet"),
    HomeEmptyError("/srv/shop/nowhere"),
    NothingLandedError("daily", reads="paid"),
    UnknownTableError("by_itm", known=["by_item", "orders", "paid"]),
    UnknownVersionError("paid", version=40, latest=12),
    UnknownSelectionError("payd+", option="--select", declared=["orders", "paid", "daily"]),
    NothingSelectedError(["orders+"]),
    SelectionWithoutAppError(HOME),
    UnknownCodeError("UNKNOWN_INPT", known=["UNKNOWN_INPUT", "UNKNOWN_TABLE"]),
    ArgumentRefusedError("--for", "soon", expected='a length of time such as 60s or "5 minutes"'),
    ArgumentRefusedError("--into", "answers", expected="a folder that holds no tables"),
    UnknownCommandError("repare", program="millstream checkpoint", known=["inspect", "repair"]),
    UnknownFlagError(
        "--hoem", command="millstream ledger", known=["--help", "--home", "--json", "--profile"]
    ),
    UsageError(command="millstream show", cause="it takes NAME, or --settings"),
    UnknownDatasetError("payd", known=["orders", "paid"]),
    UnknownTemplateError("shp", known=["etl", "shop"]),
    AppNameRefusedError("My Shop", usable="my_shop"),
    FolderTakenError("shop"),
    DriverElsewhereError(HOME, pid=4711, host="mill"),
    DriverForeignError(pid=4711),
    SqlFailedError(
        cause='Binder Error: Referenced column "itm" not found in FROM clause!',
        known=["by_item", "orders", "paid"],
    ),
    AlreadyRunningError("shop"),
    NotEqualError(["paid", "daily"]),
)
