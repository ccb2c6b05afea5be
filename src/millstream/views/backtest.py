"""How often an answer would have come out of history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.views.json_text import AnswerView

if TYPE_CHECKING:
    from datetime import datetime

    from millstream.trial.backtest import Backtest


@dataclass(frozen=True, slots=True)
class PeriodView:
    """A period in which there were rows."""

    begins: datetime
    rows: int


@dataclass(frozen=True, slots=True)
class BacktestView:
    """What an answer would have been over all that is landed."""

    app: str
    name: str
    rows: int
    since: datetime | None
    """The first event of the history; None without an event time."""
    until: datetime | None
    by: str | None
    """The column whose time rows are counted by; None if there is none."""
    per: str
    a_day: float | None
    """Rows a day, over the whole history; None without an event time."""
    periods: tuple[PeriodView, ...]
    sample: AnswerView
    """The last rows."""

    @staticmethod
    def of(app: str, name: str, found: Backtest) -> BacktestView:
        """Show what was found."""
        days = 0.0
        if found.since and found.until:
            days = (found.until - found.since).total_seconds() / 86400
        return BacktestView(
            app,
            name,
            found.rows,
            found.since,
            found.until,
            found.by,
            found.per,
            found.rows / days if days else None,
            tuple(PeriodView(at, rows) for at, rows in found.counts),
            AnswerView(found.columns, found.sample),
        )
