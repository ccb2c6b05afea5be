"""Errors of the functions of an app, as they are met."""

from __future__ import annotations

from millstream.errors import (
    AppFileError,
    ExpectationFailedError,
    ExpressionFailedError,
    FunctionRaisedError,
    KeyNotUniqueError,
    LateRowsError,
    Location,
    NotAConnectorError,
    NotADataFrameError,
    QueryRefusedError,
    RuleRefusedError,
    UdfRaisedError,
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
    UdfRaisedError(
        "paid", cause="ValueError: unlucky", arguments="number=13", at=Location("app.py", 16)
    ),
    ExpressionFailedError(
        "shares",
        condition="DIVIDE_BY_ZERO",
        cause="Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL "
        'instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error.',
        at=Location("app.py", 13),
    ),
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
