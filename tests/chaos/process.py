"""Processes and what they have started; only these are ever signalled."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Iterator

_PROCESSES = Path("/proc")
_GONE = "ZX"


@dataclass(frozen=True, slots=True)
class Process:
    """A process as it was seen; a later one with its number is not taken for it."""

    pid: int
    parent: int
    started: int
    """In clock ticks since the machine started."""
    command: tuple[str, ...]

    @property
    def is_alive(self) -> bool:
        """Whether it still runs, or a thread of it, which then holds what it has open."""
        now = _read(self.pid)
        return _has_threads(self.pid) if now is None else now.started == self.started

    def send(self, number: signal.Signals) -> None:
        """Signal it, if it is still there."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def descendants(pid: int) -> tuple[Process, ...]:
    """Find all that a process has started, directly or not."""
    everything = tuple(_everything())
    family, found = {pid}, list[Process]()
    while born := [p for p in everything if p.parent in family and p.pid not in family]:
        found += born
        family |= {process.pid for process in born}
    return tuple(found)


def jvm_of(family: Iterable[Process]) -> Process | None:
    """Find the JVM in a driver's family."""
    is_java = (p for p in family if p.command and Path(p.command[0]).name == "java")
    return next(is_java, None)


def workers_of(family: Iterable[Process]) -> tuple[Process, ...]:
    """Find the Python workers in a driver's family, without the daemon that forks them."""
    family = tuple(family)
    if (jvm := jvm_of(family)) is None:
        return ()
    daemons = {p.pid for p in family if p.parent == jvm.pid and "pyspark.worker" in p.command}
    return tuple(p for p in family if p.parent in daemons)


def process_of(thread: int) -> int | None:
    """Find the process that a thread belongs to; None if it is gone."""
    with contextlib.suppress(OSError):
        for line in (_PROCESSES / str(thread) / "status").read_text().splitlines():
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return None


def _has_threads(pid: int) -> bool:
    """Tell whether threads are left of a process that has ended: those that a tracer holds back."""
    with contextlib.suppress(OSError):
        return len(os.listdir(_PROCESSES / str(pid) / "task")) > 1
    return False


def _everything() -> Iterator[Process]:
    for folder in _PROCESSES.iterdir():
        if folder.name.isdigit() and (process := _read(int(folder.name))):
            yield process


def _read(pid: int) -> Process | None:
    try:
        status = (_PROCESSES / str(pid) / "stat").read_text()
        command = (_PROCESSES / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    # The name of the program stands in brackets and may hold any character.
    state, parent, *rest = status.rpartition(")")[2].split()
    if state in _GONE:
        return None
    words = command.decode(errors="replace").rstrip("\0").split("\0")
    return Process(pid, int(parent), int(rest[17]), tuple(words))
