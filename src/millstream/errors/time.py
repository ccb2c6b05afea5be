"""Errors of time: idle sources, state that nothing bounds, and history that is run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import CommandError, DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class IdleRefusedError(DeclarationError):
    """A source says when it is idle, and that cannot move its watermark."""

    code = "IDLE_REFUSED"

    def __init__(self, source: str, *, idle: str, why: str, instead: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} has idle={idle!r} and {why}", fix=instead, at=at.of("idle")
        )


class UnboundedStateError(DeclarationError):
    """State that grows for as long as a query runs; `check` warns of it."""

    code = "UNBOUNDED_STATE"
    is_warning = True

    def __init__(self, dataset: str, *, operator: str, why: str, fix: str, at: Location) -> None:
        self.dataset, self.operator = dataset, operator
        super().__init__(
            f"the state of {operator} in {dataset!r} grows without bound: {why}", fix=fix, at=at
        )


class SkewedKeyError(DeclarationError):
    """Most rows of an aggregation have one key; `check` warns of it."""

    code = "SKEWED_KEY"
    is_warning = True

    def __init__(
        self, dataset: str, *, reads: str, key: Mapping[str, object], share: float, at: Location
    ) -> None:
        value = ", ".join(f"{column} = {value!r}" for column, value in key.items())
        columns = ", ".join(repr(column) for column in key)
        super().__init__(
            f"{share:.0%} of the last rows of {reads!r} have {value}, and an aggregation in "
            f"{dataset!r} moves them all to one task",
            fix="count what is distinct in two stages: "
            f"ms.salted(rows, [{columns}], …); or let it be",
            at=at,
        )


class RowsBehindError(DeclarationError):
    """A table gives rows in such an order of event time that Spark would drop some as late."""

    code = "ROWS_BEHIND"

    def __init__(self, dataset: str, *, rows: int, reads: str, column: str, at: Location) -> None:
        super().__init__(
            f"rows of {reads!r} ({rows} in this batch) are further behind in {column!r} than its "
            f"source waits, and {dataset!r} would lose them as late",
            fix=f"let {reads!r} give rows by the time at which they are final, or give {column!r} "
            f"another name there and call withWatermark in {dataset!r} with a delay that is enough",
            at=at,
        )


class NothingToBacktestError(CommandError):
    """What is to be run over history is history itself."""

    code = "NOTHING_TO_BACKTEST"

    def __init__(self, name: str, *, answers: Sequence[str]) -> None:
        super().__init__(
            f"{name!r} is a source: it is what a backtest runs over",
            fix=f"name what is made from it: {listed(answers)}",
        )


class BacktestTimeError(CommandError):
    """An answer is to be counted by a time that it does not have."""

    code = "BACKTEST_TIME"

    def __init__(self, name: str, *, column: str | None, columns: Sequence[str]) -> None:
        said = f"column {column!r}" if column else "column"
        super().__init__(
            f"the answer of {name!r} has no {said} that is a timestamp or a window",
            fix=f"{closest(column or '', columns)}name one by --by COLUMN: {listed(columns)}"
            if columns
            else "let the answer keep the event time of what it reads",
        )
