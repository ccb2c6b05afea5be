"""Errors of serving stores, as they are met."""

from __future__ import annotations

from millstream.errors import (
    Location,
    LookupRefusedError,
    LookupValueError,
    NothingServedError,
    NotServedError,
    RowMissingError,
    ServiceMissingError,
    ServiceStartError,
    StoreAheadError,
    StoreColumnMissingError,
    StoreColumnRequiredError,
    StoreColumnTypeError,
    StoreFailedError,
    StoreKeyError,
    StoreLoginError,
    StoreModeError,
    StoreRestoredError,
    StoreTakenError,
    StoreUnreachableError,
    TransactionHangsError,
)

AT = Location("app.py", 11)
TABLE = "Postgres table 'sold' at postgresql://shop:***@db/shop"
CHECKPOINT = "/srv/shop/.millstream/shop/checkpoints/sold"
FORGET = "`DROP TABLE \"sold\"; DELETE FROM millstream_fence WHERE target = 'sold'`"
SAMPLES = (
    TransactionHangsError(
        "Kafka topic 'sold' at kafka:9092",
        "millstream-fences",
        2,
        offset=17,
        writer="shop/sold > sold",
    ),
    StoreUnreachableError(TABLE, why="connection refused"),
    StoreLoginError(TABLE, why='password authentication failed for user "shop"'),
    StoreFailedError(TABLE, why="permission denied for schema public"),
    StoreRestoredError(TABLE, batch=3, knows=5, checkpoint=CHECKPOINT, forget=FORGET),
    StoreAheadError(TABLE, batch=3, knows=-1, checkpoint=CHECKPOINT, forget=FORGET),
    StoreTakenError(TABLE, by="stock/sold", writer="shop/sold", forget=FORGET),
    StoreModeError(
        "SQLite",
        serve="sold",
        why="mode='update' changes rows, and no key says which",
        use='say which columns identify a row: key=["…"]',
        at=AT,
    ),
    StoreModeError(
        "Redis",
        serve="sold",
        why="mode='complete' replaces all rows in one step, and Redis changes them one by one",
        use="use mode='update', or serve it to SQLite or Postgres",
        at=AT,
    ),
    StoreColumnMissingError(TABLE, column="price", type="double precision", at=AT),
    StoreColumnTypeError(TABLE, column="n", got="text", expected=["integer", "bigint"], at=AT),
    StoreColumnRequiredError(TABLE, column="region", at=AT),
    StoreKeyError(
        TABLE,
        key=["item"],
        statement='`CREATE UNIQUE INDEX "sold_item" ON "sold" ("item")`',
        at=AT,
    ),
    LookupRefusedError("sold", given=["n"], key=["item"]),
    LookupRefusedError("sold", given=["n"], key=[]),
    LookupValueError(
        "latest",
        column="sensor",
        type="integer",
        value="v7",
        expected="a whole number of at most 32 bits, such as 7",
    ),
    RowMissingError("sold", key=[("item", "coffee")]),
    NothingServedError(TABLE),
    NotServedError("orders", served=["sold"]),
    ServiceMissingError("redis-server", package="redis-server"),
    ServiceStartError("Redis", cause="Address already in use", log="/tmp/redis/server.log"),
)
