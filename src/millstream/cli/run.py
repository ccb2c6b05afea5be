"""`millstream run`: an app, live in the terminal, until it is stopped."""

from __future__ import annotations

import os
import queue
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from millstream.cli.console_process import console_beside, wants_console
from millstream.cli.display import choose_display
from millstream.cli.interrupt import Interrupts
from millstream.cli.ledger import read
from millstream.cli.log import LogDisplay
from millstream.cli.option import (
    DEFAULT_FILE,
    AppFile,
    Exclude,
    HomeDir,
    Json,
    Master,
    ProfileName,
    Select,
    When,
    length_of_time,
)
from millstream.cli.text import with_more
from millstream.errors import MillstreamError, fault
from millstream.loading import load
from millstream.settings import __version__
from millstream.views.report import AppView

if TYPE_CHECKING:
    from collections.abc import Iterator, Set
    from pathlib import Path

    from millstream.app import App
    from millstream.cli.display import Display
    from millstream.cli.watch import Watch
    from millstream.model.graph import Graph
    from millstream.observe import Event
    from millstream.run.application import ApplicationRun, RunOptions


def run(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    app: AppFile = DEFAULT_FILE,
    *,
    once: Annotated[bool, typer.Option("--once", help="Stop when all input is processed.")] = False,
    trigger: When = None,
    length: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as 60s.")
    ] = None,
    select: Select = None,
    exclude: Exclude = None,
    profile: ProfileName = None,
    home: HomeDir = None,
    master: Master = None,
    takeover: Annotated[
        bool, typer.Option("--takeover", help="Take over from a driver that hangs.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first failure.")
    ] = False,
    console: Annotated[
        bool | None,
        typer.Option(
            "--console/--no-console",
            help="Show the app in a browser too [on, but not with --once, --json or --log].",
        ),
    ] = None,
    maintain: Annotated[
        bool,
        typer.Option(
            "--maintain/--no-maintain",
            help="Compact small files, and delete versions no longer kept.",
        ),
    ] = True,
    json: Json = False,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="json", help="Print a line for each batch and event."),
    ] = None,
) -> None:
    """Run an app until Ctrl-C. With --once, stop when all input is processed."""
    from millstream.cli.watch import Watch

    interrupts = context.ensure_object(Interrupts)
    interrupts.accept_stop()
    limit_s = length_of_time("--for", length).total_seconds() if length else None
    loaded = load(app, profile)
    display = LogDisplay(_log_of(loaded, log, home)) if log else choose_display(json=json)
    places = {"home": home, "master": master, "trigger": trigger}
    chosen = {"select": select, "exclude": exclude}
    flags = {"once": once, "takeover": takeover, "fail_fast": fail_fast}
    options: dict[str, object] = {k: v for k, v in (places | chosen | flags).items() if v}
    options["maintain"] = maintain
    is_wanted = wants_console(console, quiet=once or json or log is not None)
    # Queries report events from their own threads; only the main one prints.
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    with display, console_beside(app, profile, home, wanted=is_wanted) as link:
        running = _open(loaded, cast("RunOptions", options), display, events)
        watch = Watch(running, events, display, interrupts, limit_s=limit_s)
        interrupts.become_patient()
        if address := link():
            display.report("console", f"{address}    open it")
        display.say("  Ctrl-C finishes the batch and stops")
        running.serve(watch)
        work = watch.end()
        display.sum_up(work, read(running.home))
        where = _where(app, profile, home)
        ran = {done.name for done in work}
        selection = None if once else _selection(select, exclude)
        hints = next_commands(loaded.graph, where, ran, selection=selection)
        display.say("\n" + "\n".join(hints))
    raise typer.Exit(_exit_code(running, watch))


def _log_of(app: App, wanted: str, home: str | None) -> Path:
    """Return the history that the log is made from."""
    if wanted != "json":
        raise fault("ARGUMENT_REFUSED", option="--log", value=wanted, expected="json")
    return app.home(home).history


def _open(
    app: App, options: RunOptions, display: Display, events: queue.SimpleQueue[Event]
) -> ApplicationRun:
    from importlib.metadata import version

    from millstream.cli.quiet import write_logs_to
    from millstream.spark.java import find_java

    app.raise_faults()
    write_logs_to(app.home(options.get("home")).logs)
    master = app.master(options.get("master")).replace("*", str(os.cpu_count()))
    versions = f"Spark {version('pyspark')} · Java {find_java().version}"
    display.say(f"millstream {__version__} · {versions} · {master}")
    display.report("app", str(AppView.of(app.graph)))
    return app.open(options, on_event=events.put, report=display.report)


def _exit_code(running: ApplicationRun, watch: Watch) -> int:
    try:
        running.raise_if_stopped_for_good()
    except MillstreamError as error:
        if not watch.has_shown(error):
            print(f"\n{with_more(error)}", file=sys.stderr)
    return max(
        (q.error.exit_code for q in running.queries if q.state == "failed" and q.error), default=0
    )


def _where(file: str, profile: str | None, home: str | None) -> str:
    options = {"--profile": profile, "--home": home}
    flags = (f" {name} {shlex.quote(str(value))}" for name, value in options.items() if value)
    return shlex.quote(file) + "".join(flags)


def _selection(select: list[str] | None, exclude: list[str] | None) -> str:
    options = {"--select": select, "--exclude": exclude}
    return "".join(
        f" {name} {shlex.quote(value)}"
        for name, values in options.items()
        for value in values or ()
    )


def next_commands(
    graph: Graph, where: str, ran: Set[str], *, selection: str | None
) -> Iterator[str]:
    """List what to type after a run; nothing that needs a query which did not run.

    Args:
        graph: The app.
        where: Its file, profile and home, as they are typed.
        ran: The queries of the run.
        selection: Which those are, as it is typed; None if they have processed all input.
    """
    yield f"  millstream ledger {where}"
    if tables := [table.name for table in graph.tables if table.name in ran]:
        yield f'  millstream query {where} "SELECT * FROM {tables[-1]} LIMIT 10"'
    if selection is not None:
        rest = "processes what is landed but not yet read"
        yield f"  millstream run {where}{selection} --once     {rest}"
    stored = {source.name for source in graph.sources} | {table.name for table in graph.tables}
    if tables and stored <= ran:
        yield f"  millstream batch {where} --compare"
