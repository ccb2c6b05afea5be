"""`millstream check`: everything that is wrong with an app, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.check import faults as find_faults, warnings as find_warnings
from millstream.cli.option import DEFAULT_FILE, AppFile, Json, Master, ProfileName, When
from millstream.cli.text import MORE, counted, format_fault
from millstream.loading import load
from millstream.views.json_text import to_json
from millstream.views.report import CheckView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.app import App
    from millstream.errors import MillstreamError
    from millstream.model.graph import Graph


def check(
    app: AppFile = DEFAULT_FILE,
    *,
    profile: ProfileName = None,
    static: Annotated[bool, typer.Option("--static", help="Only what needs no Spark.")] = False,
    trigger: When = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Find everything that is wrong with an app, without running it."""
    loaded = load(app, profile)
    graph = loaded.graph if trigger is None else _triggered(loaded.graph, trigger)
    faults: Sequence[MillstreamError] = loaded.faults or find_faults(graph)
    faults = faults if static else faults or _rehearsed(loaded, graph, master)
    view = CheckView.of(graph, (*faults, *find_warnings(graph)))
    if json:
        print(to_json(view))
    else:
        show(view)
    raise typer.Exit(1 if view.faults else 0)


def show(view: CheckView) -> None:
    """Print what a check found."""
    for fault in view.faults:
        print(format_fault(fault), end="\n\n")
    for warning in view.warnings:
        print(f"! {format_fault(warning)}", end="\n\n")
    found = counted(len(view.faults), "fault")
    print(f"✗ {view.app.name}: {found}{MORE}" if view.faults else f"✓ {view.app}")
    if view.warnings and not view.faults:
        print(f"  {counted(len(view.warnings), 'warning')}{MORE}")
    for name, guarantee in view.guarantees.items():
        if not view.faults:
            print(f"  {name}: rows arrive {guarantee}")
    for name, way in view.learning.items():
        if not view.faults:
            print(f"  {name}: {way}")


def _triggered(graph: Graph, trigger: str) -> Graph:
    from millstream.run.application import parse_trigger

    parse_trigger(trigger)
    return graph.with_trigger(trigger)


def _rehearsed(app: App, graph: Graph, master: str | None) -> Sequence[MillstreamError]:
    from millstream.cli.quiet import open_quiet_session
    from millstream.trial.rehearse import rehearse

    spark = open_quiet_session(app.name, app.master(master), conf=app.bound.spark)
    return rehearse(graph, spark, app.home(None))
