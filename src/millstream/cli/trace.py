"""What happened that should not: the whole of it, in a file."""

from __future__ import annotations

import os
import sys
import traceback
from datetime import UTC, datetime

from millstream.errors import concealed
from millstream.settings import __version__


def write_trace(error: Exception) -> str:
    """Write a trace to a file and say where; give the trace itself if that cannot be."""
    from millstream.cli.quiet import log_folder

    file = log_folder() / f"trace-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    text = concealed("".join(traceback.format_exception(error)))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"millstream {__version__}: {sys.argv}\n{text}")
    except OSError:
        return text
    return str(file)
