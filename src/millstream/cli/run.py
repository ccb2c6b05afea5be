"""`millstream run`: an app, live in the terminal, until it is stopped."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from millstream.cli.face import choose_face
from millstream.cli.interrupt import Interrupts
from millstream.cli.ledger import read
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
from millstream.errors import MillstreamError
from millstream.loading import load
from millstream.settings import __version__
from millstream.views.report import AppView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.app import App, RunOptions
    from millstream.cli.face import Face
    from millstream.cli.watch import Watch
    from millstream.run.application import ApplicationRun


def run(  # noqa: PLR0913 - a command has the options it has
    context: typer.Context,
    app: AppFile = DEFAULT_FILE,
    *,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is left.")] = False,
    trigger: When = None,
    length: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after such as 60s.")
    ] = None,
    select: Select = None,
    exclude: Exclude = None,
    profile: ProfileName = None,
    home: HomeDir = None,
    master: Master = None,
    takeover: Annotated[
        bool, typer.Option("--takeover", help="Shut out a driver that hangs.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first failure.")
    ] = False,
    json: Json = False,
) -> None:
    """Run an app until Ctrl-C, or with --once until nothing is left."""
    from millstream.cli.watch import Watch

    face = choose_face(json=json)
    limit_s = length_of_time("--for", length).total_seconds() if length else None
    loaded = load(app, profile)
    given = {"home": home, "master": master, "trigger": trigger}
    chosen = {"select": select, "exclude": exclude}
    flags = {"once": once, "takeover": takeover, "fail_fast": fail_fast}
    options = {key: value for key, value in (given | chosen | flags).items() if value}
    watch = Watch(face, context.ensure_object(Interrupts), limit_s=limit_s)
    with face:
        running = _open(loaded, cast("RunOptions", options), face, watch)
        running.serve(watch)
        face.sum_up(watch.end(), read(running.home))
        where = _where(app, profile, home)
        face.say("\n" + "\n".join(_next_commands(loaded, where, is_all_done=once)))
    raise typer.Exit(_exit_code(running, watch))


def _open(app: App, options: RunOptions, face: Face, watch: Watch) -> ApplicationRun:
    from importlib.metadata import version

    from millstream.cli.quiet import write_logs_to
    from millstream.spark.java import find_java

    app.raise_faults()
    write_logs_to(app.home(options.get("home")).logs)
    master = app.master(options.get("master")).replace("*", str(os.cpu_count()))
    versions = f"Spark {version('pyspark')} · Java {find_java().version}"
    face.say(f"millstream {__version__} · {versions} · {master}")
    face.report("app", str(AppView.of(app.graph)))
    running = app.open(options, tell=watch.tell, report=face.report)
    watch.begin(running)
    face.say("  Ctrl-C finishes the batch and stops")
    return running


def _exit_code(running: ApplicationRun, watch: Watch) -> int:
    try:
        running.raise_if_stopped_for_good()
    except MillstreamError as error:
        if not watch.has_told(error):
            print(f"\n{with_more(error)}", file=sys.stderr)
    return max(
        (q.error.exit_code for q in running.queries if q.state == "failed" and q.error), default=0
    )


def _where(file: str, profile: str | None, home: str | None) -> str:
    options = {"--profile": profile, "--home": home}
    given = (f" {name} {shlex.quote(str(value))}" for name, value in options.items() if value)
    return shlex.quote(file) + "".join(given)


def _next_commands(app: App, where: str, *, is_all_done: bool) -> Iterator[str]:
    yield f"  millstream ledger {where}"
    if app.graph.tables:
        yield f'  millstream query {where} "SELECT * FROM {app.graph.tables[-1].name} LIMIT 10"'
    if not is_all_done:
        yield f"  millstream run {where} --once     takes in what has been landed but not yet read"
    if not any(source.live for source in app.graph.sources):
        yield f"  millstream batch {where} --compare"
