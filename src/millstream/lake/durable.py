"""Force to disk what must outlast a power cut."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    """Put a text in the place of a file, in one step, and force it to disk."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text)
    sync_file(temporary)
    temporary.replace(path)
    sync_folder(path.parent)


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
