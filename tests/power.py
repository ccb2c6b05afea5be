"""A power cut: what was not forced to disk is gone."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    Names = dict[str, int]


@dataclass
class Power:
    """What is on disk: of each file the content, of each folder the names, as last synced.

    A disk may hold more than that; it need not.
    """

    contents: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, Names] = field(default_factory=dict)
    _open: list[int] = field(default_factory=list)
    """Files, so that no other gets the number of one that is deleted."""

    def watch(
        self, monkeypatch: pytest.MonkeyPatch, after: Callable[[], object] = lambda: None
    ) -> None:
        """Record what is synced from now on; call `after` each time."""
        sync = os.fsync

        def fsync(handle: int) -> None:
            sync(handle)
            self._record(handle)
            after()

        monkeypatch.setattr(os, "fsync", fsync)

    def _record(self, handle: int) -> None:
        found = os.fstat(handle)
        path = f"/proc/self/fd/{handle}"
        if stat.S_ISDIR(found.st_mode):
            entries = os.scandir(path)
            self.folders[found.st_ino] = {entry.name: entry.inode() for entry in entries}
            return
        self._open.append(os.open(path, os.O_RDONLY))
        with open(path, "rb") as file:
            self.contents[found.st_ino] = file.read()

    def close(self) -> None:
        """Let the files go."""
        while self._open:
            os.close(self._open.pop())

    def cut(self, folder: Path, into: Path) -> None:
        """Write what is left of a folder after a power cut; a file without content is empty."""
        self._restore(folder.stat().st_ino, into, {each.stat().st_ino for each in _folders(folder)})

    def _restore(self, inode: int, into: Path, folders: set[int]) -> None:
        into.mkdir(exist_ok=True)
        for name, held in self.folders.get(inode, {}).items():
            if held in folders:
                self._restore(held, into / name, folders)
            else:
                (into / name).write_bytes(self.contents.get(held, b""))


def _folders(folder: Path) -> list[Path]:
    return [folder, *(each for each in folder.rglob("*") if each.is_dir())]
