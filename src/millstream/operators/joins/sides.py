"""The two sides of a join: their keys, their event times, and the columns of both in one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.errors import fault
from millstream.operators.columns import check_columns, names_of, quoted
from millstream.operators.event_time import event_time
from millstream.operators.fault import column_fault, option_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from millstream.errors import Location

SUFFIX = "_right"
"""What a column of the right side is called by, if the left side has one of its name."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Two DataFrames that can be joined."""

    left: DataFrame
    right: DataFrame
    on: tuple[str, ...]
    left_time: str
    right_time: str

    @staticmethod
    def of(
        left: DataFrame,
        right: DataFrame,
        on: str | Sequence[str],
        times: str | tuple[str | None, str | None] | None,
        *,
        call: str,
        at: Location,
    ) -> Sides:
        """Check two sides for what a join by event time needs.

        Raises:
            DeclarationError: A key, an event time or a watermark is missing, or does not fit.
        """
        keys = _keys(left, right, on, call, at)
        left_chosen, right_chosen = _chosen(times, call, at)
        waits = left.isStreaming == right.isStreaming
        one = event_time(left, left_chosen, call=call, named="the left rows", waits=waits, at=at)
        other = event_time(
            right, right_chosen, call=call, named="the right rows", waits=waits, at=at
        )
        sides = Sides(left, right, keys, one, other)
        sides._check_names(call, at)
        return sides

    @staticmethod
    def untimed(
        left: DataFrame, right: DataFrame, on: str | Sequence[str], *, call: str, at: Location
    ) -> Sides:
        """Check two sides for what a join needs that does not look at event times.

        Raises:
            DeclarationError: A key is missing, or does not fit.
        """
        sides = Sides(left, right, _keys(left, right, on, call, at), "", "")
        sides._check_names(call, at)
        return sides

    def columns(self, *, is_outer: bool, with_right: bool = True) -> list[Column]:
        """Return the columns of joined rows, `l` and `r`; none is an event time to Spark."""
        found = []
        for name in self.left.columns:
            column = quoted(name, "l")
            if is_outer and name in self.on:
                column = F.coalesce(column, quoted(name, "r"))
            found.append(column.alias(name, metadata={}))
        added = self.names.items() if with_right else ()
        return [*found, *(quoted(n, "r").alias(called, metadata={}) for n, called in added)]

    @property
    def names(self) -> dict[str, str]:
        """The columns that the right side adds, each with its name in the answer."""
        taken = set(self.left.columns)
        added = (name for name in self.right.columns if name not in self.on)
        return {name: f"{name}{SUFFIX}" if name in taken else name for name in added}

    def _check_names(self, call: str, at: Location) -> None:
        columns = [*self.left.columns, *self.names.values()]
        if doubled := next((name for name in columns if columns.count(name) > 1), None):
            why = "which the answer would have twice: rename one of the two"
            raise column_fault(call, doubled, why=why, columns=columns, at=at)


def _keys(
    left: DataFrame, right: DataFrame, on: str | Sequence[str], call: str, at: Location
) -> tuple[str, ...]:
    keys = names_of(on)
    if not keys:
        instead = 'name the columns that are equal on both sides: on="…"'
        raise option_fault(
            call, "on", None, why="every row would meet every other", instead=instead, at=at
        )
    for rows, named in ((left, "the left rows"), (right, "the right rows")):
        check_columns(rows, keys, call=call, option="on", named=named, at=at)
    for key in keys:
        kinds = [side.schema[key].dataType for side in (left, right)]
        if kinds[0] != kinds[1]:
            one, other = (kind.simpleString() for kind in kinds)
            raise fault("JOIN_KEY_TYPES", at=at, call=call, key=key, left=one, right=other)
    return keys


def _chosen(times: object, call: str, at: Location) -> tuple[str | None, str | None]:
    """Return the event-time column that the user names for each side."""
    match times:
        case str() | None:
            return times, times
        case (str() | None as left, str() | None as right):
            return left, right
    why, instead = (
        "neither the column of both sides nor that of each",
        'say event_time="at", or event_time=("at", "booked_at")',
    )
    raise option_fault(call, "event_time", times, why=why, instead=instead, at=at)
