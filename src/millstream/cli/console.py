"""`millstream console`: the app over HTTP, on this machine only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.interrupt import Interrupts
from millstream.cli.option import DEFAULT_FILE, AppFile, Json, ProfileName
from millstream.cli.text import report_line
from millstream.cli.trace import write_trace
from millstream.errors import fault
from millstream.loading import load
from millstream.settings import TOKEN_VARIABLE, __version__, given_in
from millstream.views.report import AppView
from millstream.views.served import ConsoleView
from millstream.views.shape import to_json

if TYPE_CHECKING:
    from millstream.app import App


def console(
    context: typer.Context,
    app: AppFile = DEFAULT_FILE,
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0 is any port.")
    ] = 7400,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Look rows of served answers up over HTTP, on this machine only, until Ctrl-C; no JVM."""
    try:
        from millstream.console.server import Console, new_token
    except ModuleNotFoundError as error:
        lacking = str(error.name)
        raise fault("EXTRA_MISSING", what="console", module=lacking, extra="console") from error

    loaded = load(app, profile)
    loaded.raise_faults()
    said = given_in(None, TOKEN_VARIABLE)
    token = said.value if said else new_token()
    running = Console(loaded.graph, port=port, token=token, write_trace=write_trace)
    view = ConsoleView(loaded.name, running.url, None if said else token)
    context.ensure_object(Interrupts).become_patient()
    print(to_json(view), flush=True) if json else show(view, loaded)
    running.serve()


def show(view: ConsoleView, app: App) -> None:
    """Print where the console is, and what to type to see that it answers."""
    token = view.token or f"${TOKEN_VARIABLE}"
    address = view.url + (f"#{view.token}" if view.token else "")
    print(f"millstream {__version__}")
    print(report_line("app", str(AppView.of(app.graph))))
    print(f"  {'console':<9} {address}    Ctrl-C ends it\n")
    print(f'  curl -H "Authorization: Bearer {token}" {view.url}api/served', flush=True)
