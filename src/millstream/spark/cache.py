"""Where this machine keeps what is costly to make: jars, class archives, logs."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


CACHE_VARIABLE = "MILLSTREAM_CACHE"


def cache_dir() -> Path:
    """Find the cache: `$MILLSTREAM_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(shared).absolute() / "millstream"


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Let one process at a time in; the lock goes with the process, even if it is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
