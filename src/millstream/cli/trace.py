"""What happened that should not: the whole of it, in a file."""

from __future__ import annotations

import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from tempfile import gettempdir

from millstream.errors import concealed
from millstream.settings import __version__

_KEPT = 50
"""How many traces a folder keeps."""


def write_trace(error: Exception) -> str:
    """Write a trace to a file and return its path; on a full disk, to another disk if there is."""
    from millstream.cli.quiet import log_folder
    from millstream.spark.cache import cache_dir, for_owner

    name = f"trace-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    text = concealed("".join(traceback.format_exception(error)))
    for folder in (log_folder(), cache_dir() / "logs", Path(gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / name, "w", encoding="utf-8", opener=for_owner) as trace:
                trace.write(f"millstream {__version__}: {sys.argv}\n{text}")
            for old in sorted(folder.glob("trace-*.txt"))[:-_KEPT]:
                old.unlink(missing_ok=True)
        except OSError:
            continue
        return str(folder / name)
    return "nowhere: no file can be written"
