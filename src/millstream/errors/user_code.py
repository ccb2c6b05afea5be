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


class QueryRefusedError(UserCodeError):
    """Spark refuses a query: an unknown column, or an operation a stream cannot do."""

    code = "QUERY_REFUSED"

    def __init__(self, dataset: str, *, condition: str, cause: str, at: Location) -> None:
        super().__init__(
            f"Spark refuses {dataset!r} ({condition}): {cause}",
            fix="mend the query; `millstream check` tries it without data",
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
