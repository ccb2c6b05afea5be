"""`millstream top`: the datasets of an app, live, whether its driver is in this terminal or not."""

from __future__ import annotations

import os
import re
import select
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text, why
from millstream.cli.interrupt import Interrupts
from millstream.cli.option import AppIfAny, HomeDir, Json, ProfileName  # noqa: TC001 - typer reads annotations
from millstream.observe.history import History
from millstream.observe.objective import length
from millstream.views.history import sparkline
from millstream.views.json_text import to_json
from millstream.views.overview import STATES, OverviewView
from millstream.views.why import WhyView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Group

    from millstream.lake.home import Home
    from millstream.model.graph import Graph
    from millstream.views.overview import DatasetOverview

_EVERY_S = 1.0
_HELP = "s state  i in/s  o out/s  b behind  f fresh  n name   ↑ ↓ choose   enter why   q leave"
_LEAVING = ["q", "q"]
"""The first ends an explanation, if one is shown."""
_KEY = re.compile(r"\x1b\[[A-Z]|.", re.DOTALL)
_NAMES = {"\x1b[A": "up", "\x1b[B": "down", "k": "up", "j": "down", "\r": "enter", "\n": "enter"}

COLUMNS = (
    "dataset", "kind", "state", "in/s", "", "out/s", "behind", "", "fresh", "batch", "complete to",
)  # fmt: skip
_SORTS: dict[str, Callable[[DatasetOverview], tuple[float | str, ...]]] = {
    "s": lambda d: (STATES.index(d.health.state),),
    "i": lambda d: (-(d.input_rate or 0.0),),
    "o": lambda d: (-(d.output_rate or 0.0),),
    "b": lambda d: (-(d.behind_rows or 0),),
    "f": lambda d: (-(d.fresh_s or 0.0),),
    "n": lambda d: (d.name,),
}


def top(
    context: typer.Context,
    app: AppIfAny = None,
    *,
    home: HomeDir = None,
    profile: ProfileName = None,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="How often to look.")
    ] = _EVERY_S,
    json: Json = False,
) -> None:
    """Show rates, lag and health of each dataset, live. Into a pipe, print them once."""
    from millstream.loading import find_deployed

    place, graph = find_deployed(app, home, profile)
    with History.read_only(place.history) as history:
        if json:
            print(to_json(OverviewView.of(place, graph, history)))
        elif text.is_terminal() and sys.stdin.isatty():
            context.ensure_object(Interrupts).become_patient()
            _watch(Screen(place, graph, history), context.ensure_object(Interrupts), every)
        else:
            show(OverviewView.of(place, graph, history))


def show(view: OverviewView) -> None:
    """Print the datasets once."""
    print(f"{view.app}: {view.sentence}\n")
    print("\n".join(text.aligned(COLUMNS, [row(dataset) for dataset in view.datasets])))
    for dataset in view.datasets:
        if dataset.health.why and dataset.health.state != "not running":
            print(f"\n  {dataset.name}: {dataset.health.why}")


def row(dataset: DatasetOverview) -> list[str]:
    """Set a dataset as a row."""
    fresh = length(timedelta(seconds=dataset.fresh_s)) if dataset.fresh_s is not None else None
    behind = text.NOTHING if dataset.behind_rows is None else text.grouped(dataset.behind_rows)
    return [
        dataset.name,
        dataset.kind,
        dataset.health.state,
        text.rate(dataset.input_rate),
        sparkline(dataset.recent_input),
        text.rate(dataset.output_rate),
        behind,
        sparkline([rows or 0 for rows in dataset.recent_behind]),
        fresh or text.NOTHING,
        text.took(dataset.batch_ms),
        text.moment(dataset.complete_to),
    ]


@dataclass
class Screen:
    """What is on the screen, and what each key does to it."""

    home: Home
    graph: Graph | None
    history: History
    sort: str = "s"
    chosen: int = 0
    why: str | None = None
    """The dataset that is explained; None for the table of all."""
    is_over: bool = False

    def press(self, key: str) -> None:
        """Do what a key means; others mean nothing."""
        if key in ("q", "\x1b"):
            self.is_over, self.why = self.why is None, None
        elif key in _SORTS:
            self.sort, self.chosen = key, 0
        elif key == "up":
            self.chosen = max(self.chosen - 1, 0)
        elif key == "down":
            self.chosen += 1
        elif key == "enter":
            self.why = None if self.why else self._named(self.look())

    def look(self) -> OverviewView:
        """Look at the app."""
        return OverviewView.of(self.home, self.graph, self.history)

    def ordered(self, view: OverviewView) -> list[DatasetOverview]:
        """Return the datasets in the order that was chosen."""
        found = sorted(view.datasets, key=_SORTS[self.sort])
        self.chosen = min(self.chosen, max(len(found) - 1, 0))
        return found

    def lines(self, view: OverviewView) -> Iterator[str]:
        """Return what is to be shown of a dataset that is explained."""
        dataset = next(d for d in view.datasets if d.name == self.why)
        if dataset.health.why:
            yield f"{dataset.name} is {dataset.health.state}: {dataset.health.why}"
            yield f"fix: {dataset.health.fix}"
            yield ""
        if self.graph is not None:
            yield from why.lines(WhyView.of(self.home, self.graph, dataset.name))

    def _named(self, view: OverviewView) -> str | None:
        found = self.ordered(view)
        return found[self.chosen].name if found else None


def _watch(screen: Screen, interrupts: Interrupts, every_s: float) -> None:
    from rich.live import Live

    with _keys(), Live(screen=True, auto_refresh=False) as live:
        while not screen.is_over and not interrupts.have_come:
            live.update(_drawn(screen), refresh=True)
            for key in _typed(every_s):
                screen.press(key)


def _drawn(screen: Screen) -> Group:
    from rich.console import Group
    from rich.text import Text

    view = screen.look()
    mark, style = ("✓", "green") if view.state == "ok" else ("✗", "red")
    title = Text(f"{mark} {view.app}: {view.sentence}\n", style=style)
    if screen.why is not None:
        lines = [Text(line) for line in screen.lines(view)]
        return Group(title, *lines, Text("\nq back", style="dim"))
    found = screen.ordered(view)
    table = text.rich_table(COLUMNS, [row(dataset) for dataset in found])
    if found:
        table.rows[screen.chosen].style = "reverse"
    return Group(title, table, Text(f"\n{_HELP}", style="dim"))


@contextmanager
def _keys() -> Iterator[None]:
    """Have each key arrive as it is pressed."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _typed(within_s: float) -> list[str]:
    """Return the keys that are pressed within a time; those that leave if the terminal is gone."""
    if not select.select([sys.stdin], [], [], within_s)[0]:
        return []
    with suppress(OSError):
        if typed := os.read(sys.stdin.fileno(), 64).decode(errors="replace"):
            return [_NAMES.get(key, key) for key in _KEY.findall(typed)]
    return _LEAVING
