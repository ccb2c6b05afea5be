"""Errors of operators: their options, and the rows that are given to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import DeclarationError, Location, UserCodeError, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class OperatorOptionError(DeclarationError):
    """An option of an operator is not one that it knows, or is missing."""

    code = "OPERATOR_OPTION"

    def __init__(
        self, call: str, option: str, got: object, *, why: str, instead: str, at: Location
    ) -> None:
        said = f"has no {option}" if got is None else f"has {option}={got!r}"
        super().__init__(f"{call} {said}: {why}", fix=instead, at=at)


class OperatorColumnError(DeclarationError):
    """An operator needs a column that the rows do not have, or not in that way."""

    code = "OPERATOR_COLUMN"

    def __init__(
        self,
        call: str,
        column: str,
        *,
        option: str = "column",
        why: str,
        columns: Sequence[str],
        at: Location,
    ) -> None:
        super().__init__(
            f"{call} has {option}={column!r}, {why}",
            fix=f"{closest(column, columns)}the rows have {listed(columns)}",
            at=at,
        )


class EventTimeUnknownError(DeclarationError):
    """It is not known which column is the event time of the rows of an operator."""

    code = "EVENT_TIME_UNKNOWN"

    def __init__(
        self, call: str, rows: str, candidates: Sequence[str], *, say: str, at: Location
    ) -> None:
        super().__init__(
            f"{rows} of {call} have {len(candidates)} columns of type TIMESTAMP "
            f"({listed(candidates)}), and none is said to be the event time",
            fix=f"say which it is: {call}(..., {say})",
            at=at,
        )


class NoWatermarkError(DeclarationError):
    """An operator goes by the event time of a stream, which has no watermark."""

    code = "NO_WATERMARK"

    def __init__(self, call: str, rows: str, column: str, *, at: Location) -> None:
        super().__init__(
            f"{call} goes by {column!r} of {rows}, which has no watermark there: the stream would "
            "wait for earlier rows for ever",
            fix=f'declare their source with event_time="{column}" and a watermark, and keep the '
            f"column as it is up to {call}",
            at=at,
        )


class JoinKeyTypesError(DeclarationError):
    """The two sides of a join have different types of a key."""

    code = "JOIN_KEY_TYPES"

    def __init__(self, call: str, key: str, *, left: str, right: str, at: Location) -> None:
        super().__init__(
            f"{call} joins on {key!r}, which is {left} on the left and {right} on the right",
            fix=f"cast one of them: .withColumn({key!r}, F.col({key!r}).cast({left!r}))",
            at=at,
        )


class JoinSidesError(DeclarationError):
    """A join is given a stream and a batch where it cannot join the two."""

    code = "JOIN_SIDES"

    def __init__(self, call: str, side: str, *, instead: str, at: Location) -> None:
        super().__init__(
            f"the {side} side of {call} is not a stream, and the other side is",
            fix=instead,
            at=at,
        )


class ReferenceUnreadableError(UserCodeError):
    """Reference rows cannot be read."""

    code = "REFERENCE_UNREADABLE"
    transient = True

    def __init__(self, what: str, *, cause: str, at: Location) -> None:
        super().__init__(
            f"ms.reference cannot read {what}: {cause}",
            fix="name a Delta table, files of the format that is said, or a function that reads",
            at=at,
        )


class ReferenceColumnsError(UserCodeError):
    """Reference rows have other columns than when the app was started."""

    code = "REFERENCE_COLUMNS"

    def __init__(self, what: str, *, before: str, now: str, at: Location) -> None:
        super().__init__(
            f"ms.reference of {what} has the columns {now}, and had {before}",
            fix="bring the columns back, or select those that are needed in a function: "
            "ms.reference(lambda spark: …, every=…)",
            at=at,
        )
