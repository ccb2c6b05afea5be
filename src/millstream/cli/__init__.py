"""The command line: each command parses, calls one function and prints."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command that was typed; what takes long to import is begun before all else."""
    try:
        if sys.argv[1:2] == ["query"] and "spark" not in sys.argv:
            from millstream.sql import ahead

            ahead.begin()
        from millstream.cli.program import main as run
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    run()
