"""Errors of the functions of the application: what they raised, returned or gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import Location, UserCodeError

if TYPE_CHECKING:
    from collections.abc import Sequence


class AppFileError(UserCodeError):
    """The app file raised while it was read."""

    code = "APP_FILE"

    def __init__(self, file: str, *, cause: str, at: Location | None) -> None:
        fix = f"mend the file; `python {file}` shows the whole trace"
        if "SESSION_OR_CONTEXT_NOT_EXISTS" in cause:
            fix = (
                "Spark starts after the file is read: move the line into the function of a "
                "dataset; a UDF may stay if its type is an object such as StringType()"
            )
        super().__init__(f"app file {file!r} raises {cause}", fix=fix, at=at)


class NotAConnectorError(UserCodeError):
    """A source function returned something rows cannot be read from."""

    code = "NOT_A_CONNECTOR"

    def __init__(self, source: str, *, got: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} returns {got}",
            fix="return ms.Files(…), ms.Kafka(…), ms.Generator(…), ms.Rate(…) or ms.Memory(…)",
            at=at,
        )


class NotADataFrameError(UserCodeError):
    """A function returned something else than a DataFrame."""

    code = "NOT_A_DATAFRAME"

    def __init__(self, dataset: str, *, got: str, at: Location) -> None:
        super().__init__(
            f"{dataset!r} returns {got}",
            fix="return a pyspark DataFrame; a missing `return` gives None",
            at=at,
        )


class FunctionRaisedError(UserCodeError):
    """A function of the app raised while its query was built."""

    code = "FUNCTION_RAISED"

    def __init__(self, dataset: str, *, cause: str, at: Location) -> None:
        super().__init__(
            f"{dataset!r} raises {cause}",
            fix="mend the function: it is called with DataFrames, to build the query",
            at=at,
        )


_REFUSED_FIXES = {
    "Redefining watermark": "remove this withWatermark and use the event time of the source; or, "
    "for another event time, drop the source's from the table that is read here",
    "More than one event time columns": "drop all but one of these columns from that input before "
    "the join; a window made from the event time is an event time as well",
    "without watermark": "give the source a watermark (watermark='10 minutes') and group by a "
    "window of its event time, or keep the answer by key: mode='update', key=[…]",
}
"""What to do about what Spark refuses most often, by a phrase of its sentence."""


class QueryRefusedError(UserCodeError):
    """Spark refuses a query: an unknown column, or an operation a stream cannot do."""

    code = "QUERY_REFUSED"

    def __init__(self, dataset: str, *, condition: str, cause: str, at: Location) -> None:
        super().__init__(
            f"Spark refuses {dataset!r} ({condition}): {cause}",
            fix=next(
                (fix for phrase, fix in _REFUSED_FIXES.items() if phrase in cause),
                "mend the query; `millstream check` tries it without data",
            ),
            at=at,
        )


class UdfRaisedError(UserCodeError):
    """A Python function that a query applies to its rows raised on one of them."""

    code = "UDF_RAISED"

    def __init__(self, dataset: str, *, cause: str, arguments: str = "", at: Location) -> None:
        called = f", called with {arguments}" if arguments else ""
        super().__init__(
            f"a function that {dataset!r} applies to its rows raises {cause}{called}",
            fix="correct the function, or filter such rows before it; the batch is kept, and the "
            "next run computes it again",
            at=at,
        )


class ExpressionFailedError(UserCodeError):
    """An expression of a query cannot be computed for one of its rows."""

    code = "EXPRESSION_FAILED"

    def __init__(self, dataset: str, *, condition: str, cause: str, at: Location) -> None:
        super().__init__(
            f"Spark cannot compute a row of {dataset!r} ({condition}): {cause}",
            fix="correct the expression, or filter such rows before it; the batch is kept, and the "
            "next run computes it again",
            at=at,
        )


class RuleRefusedError(UserCodeError):
    """An expectation is not a condition on the columns."""

    code = "RULE_REFUSED"

    def __init__(self, rule: str, *, dataset: str, cause: str, at: Location) -> None:
        super().__init__(
            f"rule {rule!r} of {dataset!r} is not a condition on its columns: {cause}",
            fix='write a SQL condition such as "speed BETWEEN 0 AND 250"',
            at=at.of("expect", rule),
        )


class ExpectationFailedError(UserCodeError):
    """Rows violate a rule whose violation stops the table."""

    code = "EXPECTATION_FAILED"

    def __init__(self, table: str, *, violated: str, batch: int, at: Location) -> None:
        super().__init__(
            f"batch {batch} of {table!r} violates {violated}; nothing of it was written",
            fix="mend the data or the rule, or keep such rows aside: on_violation='quarantine'",
            at=at,
        )


class LateRowsError(UserCodeError):
    """Late rows arrived at a source that allows none."""

    code = "LATE_ROWS"

    def __init__(self, source: str, *, rows: int, batch: int, at: Location) -> None:
        super().__init__(
            f"batch {batch} of source {source!r} has {rows} late rows, and late='fail'; "
            "nothing of it was landed",
            fix="use a longer watermark, or late='keep' to land late rows aside",
            at=at.of("late"),
        )


class KeyNotUniqueError(UserCodeError):
    """A batch has two rows for one key."""

    code = "KEY_NOT_UNIQUE"

    def __init__(self, table: str, *, key: Sequence[str], batch: int, at: Location) -> None:
        super().__init__(
            f"batch {batch} of {table!r} has several rows for one key ({', '.join(key)}); "
            "nothing of it was written",
            fix="aggregate or deduplicate by the key, or add columns to it",
            at=at.of("key"),
        )
