"""`millstream why`: what a dataset waits for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text
from millstream.cli.option import (
    AppIfAny,
    HomeDir,
    Json,
    ProfileName,
    app_and_name,
    names_beginning,
)
from millstream.model.duration import to_text
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from millstream.views.why import ClosingView, SourceTimeView, WhyView

_SECOND = timedelta(seconds=1)


def why(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The dataset.", autocompletion=names_beginning)
    ],
    app: AppIfAny = None,
    *,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Show what a dataset waits for. Names the source that holds it, and when windows close."""
    from millstream.loading import find_deployed
    from millstream.views.why import WhyView

    file, dataset = app_and_name(name, app)
    place, graph = find_deployed(file, home, profile)
    assert graph is not None
    view = WhyView.of(place, graph, dataset)
    print(to_json(view)) if json else show(view)


def show(view: WhyView) -> None:
    """Print what a dataset waits for."""
    print("\n".join(lines(view)))
    if view.sources:
        print()
        columns = ("source", "complete to", "greatest event", "rows came", "watermark", "idle")
        text.print_table(columns, [_source(source, view.now) for source in view.sources])


def lines(view: WhyView) -> Iterator[str]:
    """Return what a dataset waits for, in words."""
    yield from (_title(view), "")
    yield from (f"  {line}" for line in _reasons(view))


def _title(view: WhyView) -> str:
    mode = f" · {view.mode}" if view.mode else ""
    complete = f"complete to {text.moment(view.complete_to)}" if view.complete_to else view.state
    return f"{view.name}: {view.kind}{mode}, {text.counted(view.rows, 'row')}, {complete}"


def _reasons(view: WhyView) -> Iterator[str]:
    if view.driver is None:
        yield f"no driver runs: nothing moves until `millstream run` does ({view.state})"
    holder = next((source for source in view.sources if source.name == view.held_by), None)
    if holder is None:
        yield from _timeless(view)
    else:
        yield _held(view, holder)
    for closing in view.closing:
        yield from _closing(closing, view)
    if view.kind == "table" and view.complete_to is None and view.state == "ran" and holder:
        yield "up to when it is complete is not known: a join, or keyed state, does not report it"


def _timeless(view: WhyView) -> Iterator[str]:
    for source in view.sources:
        yield f"{source.name} is live: nothing is stored of how far it is"
    for name in view.timeless:
        yield f"{name} has no event time: its rows are passed on as they arrive, and none is final"


def _held(view: WhyView, holder: SourceTimeView) -> str:
    if holder.complete_to is None:
        if holder.state == "never ran":
            return f"{holder.name} has no row yet"
        return f"{holder.name} is complete to no moment yet: too few rows have come"
    by = "its clock" if holder.quiet_since else "its rows"
    complete = f"{holder.name} is complete to {text.moment(holder.complete_to)} by {by}"
    if view.name == holder.name:
        return complete
    others = len(view.sources) - 1
    return f"{complete}{', less than the others' if others else ''}: that holds the watermark"


def _closing(closing: ClosingView, view: WhyView) -> Iterator[str]:
    if closing.kind == "window":
        window = f"the window of {to_text(closing.length)} that ends at {text.moment(closing.ends)}"
        result = f"{window} {'comes' if view.mode == 'append' else 'is final'}"
    else:
        # A join waits for a millisecond longer than its bound.
        waits = max(closing.length - closing.length % _SECOND, min(closing.length, _SECOND))
        yield f"a row waits up to {to_text(waits)} of event time for what may follow it"
        result = f"what began by {text.moment(closing.ends - closing.length)} is final"
    needs = text.exact_moment(closing.needs)
    yield f"{result} when {view.held_by} gives an event of {needs} or later"
    if closing.by_rows_at is None:
        yield "  when is not known: it takes two batches to know its speed"
    elif closing.by_rows_at >= view.now:
        in_time = _about(closing.by_rows_at - view.now)
        yield f"  at its speed of late: about {text.moment(closing.by_rows_at)}, in {in_time}"
    else:
        overdue = _about(view.now - closing.by_rows_at)
        yield f"  at its speed of late that was due {overdue} ago: it has slowed down or stopped"
    if closing.by_clock_at is not None:
        yield f"  without one, by the clock, at {text.moment(closing.by_clock_at)}"
    elif view.advised_idle is not None:
        hint = f'idle="{view.advised_idle}" on {view.held_by}'
        yield f"  {hint} lets the clock advance without its rows"


def _source(source: SourceTimeView, now: datetime) -> list[str]:
    if source.state == "live":
        return [source.name, *([text.NOTHING] * 4), "live"]
    came = f"{_about(now - source.last_rows_at)} ago" if source.last_rows_at else text.NOTHING
    return [
        source.name,
        text.moment(source.complete_to),
        text.moment(source.greatest_event_time),
        came,
        source.watermark or text.NOTHING,
        source.idle or text.NOTHING,
    ]


def _about(length: timedelta) -> str:
    """Write how long something takes, to two units.

    >>> _about(timedelta(hours=2, minutes=3, seconds=4)), _about(timedelta(seconds=7.4))
    ('2 h 3 min', '7 s')
    """
    seconds = round(max(length, timedelta()) / _SECOND)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for unit, size in units:
        if seconds >= size:
            parts.append(f"{seconds // size} {unit}")
            seconds %= size
    return " ".join(parts[:2]) or "0 s"
