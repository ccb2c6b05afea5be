"""The cache of this machine: jars, class archives, logs."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.settings import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["cache_dir", "exclusive", "for_owner"]


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock between processes; it is released when the process ends, even if it is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def for_owner(path: str, flags: int) -> int:
    """Open a log, as `open` does; if it is new, nobody else can read it: it may quote rows."""
    return os.open(path, flags, 0o600)
