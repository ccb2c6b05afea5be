"""`millstream stop`: the driver of a home, asked to finish its batch and stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.option import AppIfAny, HomeDir, Json, ProfileName, length_of_time
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.views.status import StopView


def stop(
    app: AppIfAny = None,
    *,
    wait: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait for the running batch.")
    ] = "60s",
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Ask the running driver to stop. It finishes its batch; the command waits for it."""
    from millstream.loading import find_home

    view = ask(find_home(app, home, profile), wait)
    print(to_json(view)) if json else show(view)


def ask(home: Home, wait: str) -> StopView:
    """Stop the driver of a home."""
    from millstream.run.stop import stop_driver
    from millstream.views.status import StopView

    return StopView(str(home.path), stop_driver(home, wait=length_of_time("--wait", wait)))


def show(view: StopView) -> None:
    """Print what happened."""
    if view.driver is None:
        print(f"  no driver runs: {view.home}")
    else:
        print(f"  ✓ pid {view.driver.pid} has stopped: {view.home}")
