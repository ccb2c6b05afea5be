"""Where this machine keeps what is costly to make: jars, class archives, logs."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.settings import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["cache_dir", "exclusive"]


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Let one process at a time in; the lock goes with the process, even if it is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
