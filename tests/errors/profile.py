"""Errors of `millstream.toml`, as they are met."""

from __future__ import annotations

from millstream.errors import (
    ColumnsFixedError,
    KeyRequiredError,
    Location,
    ProfileFileError,
    SparkSettingRefusedError,
    UnknownKeyError,
    UnknownKindError,
    UnknownProfileError,
    UnknownSourceError,
    ValueRefusedError,
    VariableMissingError,
)

AT = Location("millstream.toml", 2)
KINDS = ["delta", "files", "generator", "http", "kafka", "rate", "socket", "table"]
SAMPLES = (
    ProfileFileError("Invalid value", at=AT),
    UnknownProfileError("pord", known=["default", "prod"], file="millstream.toml"),
    UnknownProfileError("prod", known=(), file=None),
    UnknownKeyError(
        "hoem",
        table="profile.default",
        known=["alert", "home", "master", "serve", "sources", "spark"],
        at=AT,
    ),
    ValueRefusedError("sources.orders.rate", got="'fast' (a text)", expected="an integer", at=AT),
    KeyRequiredError("orders", kind="kafka", key="topic", at=AT),
    UnknownSourceError("ordrs", declared=["orders"], at=AT),
    UnknownKindError("kafak", name="orders", known=KINDS, at=AT),
    ColumnsFixedError("orders", kind="rate", gives="timestamp TIMESTAMP, value BIGINT", at=AT),
    SparkSettingRefusedError(
        "spark.sql.session.timeZone", why="event times are judged in UTC", at=AT
    ),
    VariableMissingError("sources.orders.path", names=["ORDERS"], at=AT),
)
