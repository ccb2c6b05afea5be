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
    return sum(int(fields[21]) * _PAGE for fields in _stats(root).values())


def resident_by_kind(root: int) -> dict[str, float]:
    """Add up what is resident, in MiB: of a driver, of its JVM, and of the Python workers below."""
    found = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}
    for pid, fields in _stats(root).items():
        try:
            command = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:  # it has ended
            continue
        kind = "driver" if pid == root else "jvm" if command == "java" else "workers"
        found[kind] += int(fields[21]) * _PAGE / 2**20
    return {kind: round(mib) for kind, mib in found.items()}


def processor_s(root: int) -> float:
    """Add up the time that a process and all below it have used of the processors."""
    ticks = sum(int(n) for fields in _stats(root).values() for n in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stats(root: int) -> dict[int, list[str]]:
    """Return the fields of /proc/…/stat after the name, of a process and of all below it."""
    found: dict[int, list[str]] = {}
    below: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(folder.name)
        found[pid] = fields
        below.setdefault(int(fields[1]), []).append(pid)
    stats, todo = dict[int, list[str]](), [root]
    while todo:
        pid = todo.pop()
        if pid in found:
            stats[pid] = found[pid]
        todo += below.get(pid, [])
    return stats
