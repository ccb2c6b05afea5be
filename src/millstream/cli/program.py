"""The program `millstream`: its commands, and what becomes of whatever they raise."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from millstream.cli.interrupt import Interrupts
from millstream.cli.text import with_more
from millstream.cli.trace import write_trace
from millstream.cli.usage import Commands, parser_error
from millstream.errors import MillstreamError, fault
from millstream.settings import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = (
    *("new", "sample", "run", "check", "verify", "batch", "backtest", "stop"),
    *("graph", "status", "top", "show", "why", "ledger", "query", "state", "models"),
    *("maintain", "forget", "backup", "restore", "settings", "doctor", "explain"),
    *("checkpoint", "alerts", "files", "console"),
)


def program(arguments: Sequence[str]) -> typer.Typer:
    """Build the program with the command that was typed, or with all if it is none of them."""
    made = typer.Typer(
        name="millstream",
        cls=Commands,
        help="Continuous applications on Apache Spark.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    made.callback()(_options)
    for verb in arguments[:1] if arguments[0] in VERBS else VERBS:
        command = getattr(import_module(f"millstream.cli.{verb}"), verb)
        if isinstance(command, typer.Typer):
            made.add_typer(command)
        else:
            made.command()(command)
    return made


def main() -> NoReturn:
    """Run the command that was typed, and exit with its exit code."""
    interrupts = Interrupts()
    interrupts.install()
    _leave(run_command(sys.argv[1:], interrupts))


def run_command(arguments: Sequence[str], interrupts: Interrupts) -> int:
    """Run a command and return its exit code; an error is printed in a few lines."""
    try:
        typed = list(arguments) or ["--help"]
        code = program(typed)(typed, prog_name="millstream", obj=interrupts, standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        return interrupts.exit_code
    except Exception as error:
        if interrupts.are_at_start_up:
            return interrupts.exit_code
        explained = _explained(error)
        print(with_more(explained), file=sys.stderr)
        return explained.exit_code
    if interrupts.are_at_start_up:
        # The parser turns every signal into the exit code of Ctrl-C.
        return interrupts.exit_code
    return code if isinstance(code, int) else 0


def _show_version(*, wanted: bool) -> None:
    if wanted:
        print(f"millstream {__version__}")
        raise typer.Exit


def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            is_eager=True,
            callback=lambda wanted: _show_version(wanted=wanted),
        ),
    ] = False,
) -> None:
    pass


def _explained(error: Exception) -> MillstreamError:
    if isinstance(error, MillstreamError):
        return error
    if typed := parser_error(error):
        return typed
    if "py4j" in sys.modules:
        from millstream.build.failure import lost_driver
        from millstream.cli.quiet import log_folder

        if lost := lost_driver(str(log_folder() / "spark.log"), within_s=1):
            return lost
    return fault("UNEXPECTED", cause=f"{type(error).__name__}: {error}", trace=write_trace(error))


def _leave(code: int) -> NoReturn:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    # Threads that wait for Spark would hold the process, and the JVM goes when this one has gone;
    # of what else a command has made, nothing outlives it: to take it apart takes 20 ms.
    os._exit(code)
