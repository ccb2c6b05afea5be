"""Force to disk what must outlast a power cut; nothing else calls fsync.

A file is on disk before it gets its name, and its name before anything relies on it.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_durably(path: Path, content: str | bytes, *, by: str = "") -> None:
    """Replace the content of a file, in one step, and force it to disk.

    Args:
        path: The file.
        content: What is in it afterwards, and nothing else.
        by: A name for the writer, if several may write at once.
    """
    temporary = path.with_name(f".{path.name}{by and '.'}{by}.tmp")
    with temporary.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        sync_written(file)
    temporary.replace(path)
    sync_folder(path.parent)


def sync_written(file: IO[Any]) -> None:
    """Force to disk what was written to a file that is open."""
    file.flush()
    os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    """Force the content of a file to disk."""
    _sync(path)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk."""
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
