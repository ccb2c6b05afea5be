"""How much memory a process and all that it started take, at most."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

_EVERY_S = 0.2
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """Looks at the memory of this process and of all below it, until it is left.

    What is seen once only does not count: a program that is about to start looks as large as the
    one that starts it.
    """

    def __init__(self) -> None:
        self.mib = 0.0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        before = 0
        while not self._over.wait(_EVERY_S):
            now = resident_bytes(os.getpid())
            self.mib = max(self.mib, min(before, now) / 2**20)
            before = now


def resident_bytes(root: int) -> int:
    """Add up what is resident of a process and of all below it; shared pages count repeatedly."""
    resident: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(folder.name)
        resident[pid] = int(fields[21]) * _PAGE
        below.setdefault(int(fields[1]), []).append(pid)
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        total += resident.get(pid, 0)
        todo += below.get(pid, [])
    return total
