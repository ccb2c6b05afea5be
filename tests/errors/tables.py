"""Errors of tables, as they are met."""

from __future__ import annotations

from millstream.errors import (
    ChangingInputError,
    ColumnAddedError,
    ColumnDroppedError,
    ColumnMissingError,
    ColumnReservedError,
    KeyMissingError,
    KeyUnusedError,
    LayoutChangedError,
    Location,
    SchemaChangedError,
)

AT = Location("app.py", 11)
SAMPLES = (
    KeyMissingError("sold", at=AT),
    KeyUnusedError("paid", mode="append", at=AT),
    ChangingInputError(
        "popular", mode="append", reads="sold", reads_mode="update", at=Location("app.py", 12)
    ),
    ColumnMissingError("key", "itm", dataset="table 'sold'", columns=["item", "n"], at=AT),
    ColumnReservedError("_kept", table="paid", at=AT),
    SchemaChangedError("paid", column="price", was="DOUBLE", now="DECIMAL(10,2)", at=AT),
    ColumnAddedError("paid", column="item", at=AT),
    ColumnDroppedError("paid", column="item", at=AT),
    LayoutChangedError("paid", option="partition_by", was="[]", now="['day']", at=AT),
)
