"""`millstream backtest`: how often an alert, a pattern or a table would have come so far."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text
from millstream.cli.option import HomeDir, Json, Master, ProfileName, app_and_name, names_beginning
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from millstream.views.backtest import BacktestView

_WIDEST = 40
_LINES = 60


class Period(StrEnum):
    """The period that rows are counted by."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


def backtest(  # noqa: PLR0913 - a command has the options it has
    app: Annotated[str, typer.Argument(metavar="[APP]", help="The app file or folder.")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The dataset.", autocompletion=names_beginning),
    ] = None,
    *,
    per: Annotated[
        Period | None, typer.Option("--per", help="The period to count by [by the history].")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COLUMN", help="The time to count by [the event time]."),
    ] = None,
    rows: Annotated[int, typer.Option(min=0, metavar="N", help="How many rows to show.")] = 5,
    home: HomeDir = None,
    profile: ProfileName = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Compute one dataset over all landed rows. Shows the rows per period, and the last ones."""
    from millstream.cli.quiet import open_quiet_session
    from millstream.cli.spark_progress import showing_progress
    from millstream.loading import load
    from millstream.trial.backtest import LandedHistory
    from millstream.views.backtest import BacktestView

    file, dataset = app_and_name(app, name)
    loaded = load(file, profile)
    loaded.raise_faults()
    place = loaded.home(home)
    place.verify_in_use(loaded.name)
    spark = open_quiet_session(loaded.name, loaded.master(master), conf=loaded.bound.spark)
    with showing_progress(spark, dataset):
        history = LandedHistory(loaded.graph, spark, place)
        found = history.backtest(dataset, rows=rows, by=by, per=per)
    view = BacktestView.of(loaded.name, dataset, found)
    print(to_json(view)) if json else show(view)


def show(view: BacktestView) -> None:
    """Print a backtest."""
    print(_title(view))
    if view.by is None:
        print("  it has no time that it could be counted by")
    elif view.periods:
        print()
        most = max(period.rows for period in view.periods)
        shown = view.periods[-_LINES:]
        text.print_table(
            (view.per, "rows", ""),
            [[_begins(p.begins, view.per), str(p.rows), _bar(p.rows, most)] for p in shown],
        )
        if left := len(view.periods) - len(shown):
            print(f"  and {text.counted(left, view.per)} before")
    if view.sample.rows:
        print(f"\n  the last {text.counted(len(view.sample.rows), 'row')}:")
        cells = [[text.cell(value) for value in row] for row in view.sample.rows]
        text.print_table(view.sample.columns, cells)


def _title(view: BacktestView) -> str:
    title = f"{view.name}: {text.counted(view.rows, 'row')}"
    if view.since and view.until:
        title += f" over {text.moment(view.since)} to {text.moment(view.until)}"
    if view.a_day is not None and view.rows:
        title += f", {text.rate(view.a_day)} a day"
    if view.periods:
        title += f", in {text.counted(len(view.periods), view.per)}"
    return title


def _begins(at: object, per: str) -> str:
    return f"{at:%Y-%m-%d}" if per == Period.DAY else f"{at:%Y-%m-%d %H:%M}"


def _bar(rows: int, most: int) -> str:
    return "█" * max(1, round(_WIDEST * rows / most))
