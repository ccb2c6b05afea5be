"""`millstream doctor`: what is wrong with the machine, the services and the home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import DEFAULT_FILE, HomeDir, Json, Master, ProfileName
from millstream.errors import MillstreamError
from millstream.lake.home import Home
from millstream.loading import load
from millstream.settings import resolve_home, resolve_master
from millstream.views.json_text import to_json
from millstream.views.report import DoctorView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.doctor import Diagnosis

_SIGNS = {"ok": "✓", "warn": "!", "bad": "✗"}


def doctor(
    app: Annotated[
        str | None,
        typer.Argument(
            metavar="[APP]", help="The app file; without it, only the machine is checked."
        ),
    ] = None,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Check what an app needs to run; exit 3 if anything is missing."""
    chosen = app or (DEFAULT_FILE if Path(DEFAULT_FILE).exists() else None)
    view = DoctorView(tuple(_diagnoses(chosen, profile, home, master)))
    if json:
        print(to_json(view))
    else:
        show(view)
    raise typer.Exit(0 if view.is_well else 3)


def show(view: DoctorView) -> None:
    """Print the checks."""
    width = max(len(diagnosis.subject) for diagnosis in view.diagnoses)
    for diagnosis in view.diagnoses:
        print(f"{_SIGNS[diagnosis.state]} {diagnosis.subject:<{width}}  {diagnosis.what}")
        if diagnosis.fix:
            print(f"  fix: {diagnosis.fix}")


def _diagnoses(
    file: str | None, profile: str | None, home: str | None, master: str | None
) -> Iterator[Diagnosis]:
    from millstream.doctor import Diagnosis, look_at_home, look_at_machine, look_at_services

    place = Home.at(resolve_home(home, app="").value)
    runs_on = resolve_master(master).value
    if file is None:
        yield from look_at_machine(place.path, master=runs_on)
        return
    try:
        loaded = load(file, profile)
        place, runs_on = loaded.home(home), loaded.master(master)
    except MillstreamError as error:
        yield Diagnosis.of("app", error)
        yield from look_at_machine(place.path, master=runs_on)
        return
    for fault in loaded.bound.faults:
        yield Diagnosis.of("profile", fault)
    yield from look_at_machine(place.path, master=runs_on)
    yield from look_at_services(loaded.graph, master=runs_on)
    yield from look_at_home(place, loaded.name)
