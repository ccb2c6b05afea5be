"""The command line: each command parses, calls one function and prints."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command that was typed; Ctrl-C ends it even while it is still being imported."""
    try:
        from millstream.cli.program import main as run
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    run()
