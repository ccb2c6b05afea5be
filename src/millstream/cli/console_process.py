"""The console of a run: a process of its own, so that nothing in it can slow the app down."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.views.served import ConsoleView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EXTRA = "fastapi"
_LISTENS_WITHIN_S = 10.0
_ENDS_WITHIN_S = 2.0


def wants_console(asked: bool | None, *, quiet: bool) -> bool:  # noqa: FBT001 - an option
    """Return whether a run has a console: as asked or, if its output is for people, if it can."""
    return asked if asked is not None else not quiet and find_spec(_EXTRA) is not None


@contextmanager
def console_beside(
    app: str, profile: str | None, home: str | None, *, wanted: bool
) -> Iterator[Callable[[], str | None]]:
    """Start a console that ends with the run; give what waits for its link, None if it has none.

    Raises:
        EXTRA_MISSING: The extra is not installed.
    """
    if not wanted:
        yield lambda: None
        return
    if find_spec(_EXTRA) is None:
        raise fault("EXTRA_MISSING", what="console", module=_EXTRA, extra="console")
    options = ("--profile", profile), ("--home", home)
    words = [word for name, value in options if value for word in (name, value)]
    # A session of its own: Ctrl-C is for the run, which ends the console last.
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "millstream.cli", "console", app, *words),
            *("--json", "--of-run", str(os.getpid())),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield partial(_link, process)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _link(process: subprocess.Popen[bytes]) -> str | None:
    """Wait for the line that a console prints when it listens; None if it does not come."""
    assert process.stdout is not None
    line, end = b"", time.monotonic() + _LISTENS_WITHIN_S
    printed = process.stdout.fileno()
    while not line.endswith(b"\n"):
        left = end - time.monotonic()
        if left < 0 or not select.select([printed], [], [], left)[0]:
            return None
        if not (read := os.read(printed, 4096)):
            return None
        line += read
    return ConsoleView(**json.loads(line)).link
