"""Errors of tables: their keys, their modes and the columns of their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class KeyMissingError(DeclarationError):
    """A table in update mode has no key."""

    code = "KEY_MISSING"

    def __init__(self, table: str, *, at: Location) -> None:
        super().__init__(
            f"table {table!r} has mode='update' and no key",
            fix='say which columns identify a row: key=["…"]',
            at=at.of("mode"),
        )


class KeyUnusedError(DeclarationError):
    """A table has a key that its mode does not use."""

    code = "KEY_UNUSED"

    def __init__(self, table: str, *, mode: str, at: Location) -> None:
        super().__init__(
            f"table {table!r} has a key, which mode={mode!r} does not use",
            fix="use mode='update' to keep one row per key, or leave the key out",
            at=at.of("key"),
        )


class ChangingInputError(DeclarationError):
    """A table that only adds or upserts reads one whose rows change."""

    code = "CHANGING_INPUT"

    def __init__(self, table: str, *, mode: str, reads: str, reads_mode: str, at: Location) -> None:
        super().__init__(
            f"table {table!r} has mode={mode!r} and reads {reads!r}, "
            f"whose rows change (mode={reads_mode!r})",
            fix="use mode='complete': the answer is then recomputed whenever its input changes",
            at=at.of("mode"),
        )


class ColumnMissingError(DeclarationError):
    """A key or partition column is not in the answer."""

    code = "COLUMN_MISSING"

    def __init__(
        self, option: str, column: str, *, dataset: str, columns: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"{dataset} has {option}={column!r}, which is not in its answer",
            fix=f"{closest(column, columns)}the answer has {listed(columns)}",
            at=at.of(option),
        )


class ColumnReservedError(DeclarationError):
    """A table's answer has a column name Millstream keeps for itself."""

    code = "COLUMN_RESERVED"

    def __init__(self, column: str, *, table: str, at: Location) -> None:
        super().__init__(
            f"the answer of {table!r} has the column {column!r}, which Millstream keeps for itself",
            fix="rename the column",
            at=at,
        )


class SchemaChangedError(DeclarationError):
    """The answer no longer fits the table that holds the earlier answers."""

    code = "SCHEMA_CHANGED"

    def __init__(self, table: str, *, column: str, was: str, now: str, at: Location) -> None:
        super().__init__(
            f"column {column!r} of {table!r} is {was} in the table and {now} in the answer",
            fix="cast it back, or give the new column another name (and evolve=True)",
            at=at,
        )


class ColumnAddedError(DeclarationError):
    """The answer has a column that the table lacks."""

    code = "COLUMN_ADDED"

    def __init__(self, table: str, *, column: str, at: Location) -> None:
        super().__init__(
            f"the answer of {table!r} has the column {column!r}, which the table lacks",
            fix="declare it with evolve=True to add the column; earlier rows have null there",
            at=at,
        )


class ColumnDroppedError(DeclarationError):
    """The answer lacks a column that the table has."""

    code = "COLUMN_DROPPED"

    def __init__(self, table: str, *, column: str, at: Location) -> None:
        super().__init__(
            f"the answer of {table!r} lacks the column {column!r} of the table",
            fix="declare it with evolve=True to keep the column, null in new rows",
            at=at,
        )


class LayoutChangedError(DeclarationError):
    """A table that exists is declared with another partitioning."""

    code = "LAYOUT_CHANGED"

    def __init__(self, table: str, *, option: str, was: str, now: str, at: Location) -> None:
        super().__init__(
            f"table {table!r} was made with {option}={was} and is declared with {option}={now}",
            fix="declare it as it was, or give the table another name",
            at=at.of(option),
        )
