"""`millstream console`: the app in a browser, and look-ups over HTTP, on this machine only."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.interrupt import Interrupts
from millstream.cli.option import DEFAULT_FILE, AppIfAny, HomeDir, Json, ProfileName
from millstream.cli.text import report_line
from millstream.cli.trace import write_trace
from millstream.errors import MillstreamError, fault
from millstream.loading import load
from millstream.settings import TOKEN_VARIABLE, __version__, option_or_variable
from millstream.views.json_text import to_json
from millstream.views.report import AppView
from millstream.views.served import ConsoleView

if TYPE_CHECKING:
    from millstream.console.deployment import Deployment
    from millstream.console.server import ConsoleServer

_PORT = 7400
_NICE = 5


def console(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    app: AppIfAny = None,
    *,
    home: HomeDir = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="PORT",
            help="The port to listen on, 0 for any free one [7400, or a free one].",
        ),
    ] = None,
    profile: ProfileName = None,
    of_run: Annotated[int | None, typer.Option("--of-run", hidden=True)] = None,
    json: Json = False,
) -> None:
    """Show an app in a browser: live, stopped or dead. Also serves look-ups over HTTP."""
    deployment = _deployment(app, home, profile)
    fixed = option_or_variable(None, TOKEN_VARIABLE)
    running = _listening(deployment, port, fixed.value if fixed else None)
    keys = running.keys
    view = ConsoleView(
        deployment.name, running.url, None if fixed else keys.operate, look_token=keys.look
    )
    context.ensure_object(Interrupts).become_patient()
    if of_run is not None:
        os.nice(_NICE)
        threading.Thread(target=_stop_with, args=(of_run, running), daemon=True).start()
    print(to_json(view), flush=True) if json else show(view, deployment)
    running.serve()


def show(view: ConsoleView, deployment: Deployment) -> None:
    """Print the address of the console, and a command that tries it."""
    print(f"millstream {__version__}")
    if deployment.graph:
        print(report_line("app", str(AppView.of(deployment.graph))))
    else:
        print(report_line("home", str(deployment.home.path)))
    print(f"  {'console':<9} {view.link}    open it; Ctrl-C ends it")
    print(f"  {'to share':<9} {view.url}#{view.look_token}    shows everything, changes nothing\n")
    token = view.token or f"${TOKEN_VARIABLE}"
    print(f'  curl -H "Authorization: Bearer {token}" {view.url}api/served', flush=True)


def _deployment(app: str | None, home: str | None, profile: str | None) -> Deployment:
    try:
        from millstream.console.deployment import Deployment
        from millstream.console.server import ConsoleServer  # noqa: F401 - before the app is read
    except ModuleNotFoundError as error:
        lacking = str(error.name)
        raise fault("EXTRA_MISSING", what="console", module=lacking, extra="console") from error
    if app is None and home is not None:
        from millstream.lake.home import Home

        place = Home.at(home)
        place.verify_in_use()
        return Deployment(name=str(place.read_manifest()["app"]), home=place)
    loaded = load(app or DEFAULT_FILE, profile)
    loaded.raise_faults()
    place = loaded.home(home)
    place.verify(loaded.name)
    return Deployment(
        name=loaded.name,
        home=place,
        graph=loaded.graph,
        settings=lambda: loaded.settings(home=home),
    )


def _listening(deployment: Deployment, port: int | None, token: str | None) -> ConsoleServer:
    from millstream.console.key import new_token
    from millstream.console.server import ConsoleServer

    token = token or new_token()
    try:
        wanted = _PORT if port is None else port
        return ConsoleServer(deployment, port=wanted, token=token, write_trace=write_trace)
    except MillstreamError as error:
        if port is not None or error.code != "PORT_TAKEN":
            raise
        return ConsoleServer(deployment, port=0, token=token, write_trace=write_trace)


def _stop_with(run: int, console: ConsoleServer) -> None:
    """Stop when the run that started this process has ended, in whatever way."""
    while os.getppid() == run:
        time.sleep(0.5)
    console.stop()
