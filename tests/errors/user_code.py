"""Errors of the functions of an app, as they are met."""

from __future__ import annotations

from millstream.errors import (
    AppFileError,
    ExpectationFailedError,
    FunctionRaisedError,
    KeyNotUniqueError,
    LateRowsError,
    Location,
    NotAConnectorError,
    NotADataFrameError,
    QueryRefusedError,
    RuleRefusedError,
)

SAMPLES = (
    AppFileError(
        "app.py",
        cause="JSONDecodeError: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)",
        at=Location("app.py", 3),
    ),
    AppFileError(
        "app.py",
        cause="PySparkRuntimeError: [SESSION_OR_CONTEXT_NOT_EXISTS] SparkContext or SparkSession "
        "should be created first.",
        at=Location("app.py", 3),
    ),
    NotAConnectorError("orders", got="None", at=Location("app.py", 6)),
    NotADataFrameError("paid", got="None", at=Location("app.py", 11)),
    FunctionRaisedError(
        "paid",
        cause="PySparkAttributeError: [ATTRIBUTE_NOT_SUPPORTED] Attribute `were` is not supported.",
        at=Location("app.py", 13),
    ),
    QueryRefusedError(
        "paid",
        condition="UNRESOLVED_COLUMN.WITH_SUGGESTION",
        cause="A column, variable, or function parameter with name `idd` cannot be resolved. "
        "Did you mean one of the following? [`id`]",
        at=Location("app.py", 11),
    ),
    RuleRefusedError("plausible", dataset="clean", cause="it is double", at=Location("app.py", 11)),
    ExpectationFailedError(
        "clean", violated="'speed is plausible' (2 rows)", batch=3, at=Location("app.py", 11)
    ),
    LateRowsError("readings", rows=2, batch=7, at=Location("app.py", 6)),
    KeyNotUniqueError("latest", key=["item"], batch=3, at=Location("app.py", 11)),
)
