"""Queries of the console, each in a process of its own, which can be stopped at any time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.sql.limits import over_limit, over_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.lake.home import Home

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
"""What a query sees of the environment: no password is among it."""
_GRACE_S = 3
_WAIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLimits:
    """What one query of the console may use, and how many run at once."""

    time_s: int = 30
    rows: int = 5_000
    bytes: int = 4 << 20
    """Of the rows that are shown."""
    memory_mb: int = 1024
    disk_mb: int = 1024
    """For temporary files, and for a file that is downloaded."""
    at_once: int = 2


class SqlProcesses:
    """Answers queries; a process for the next one is started in advance."""

    def __init__(self, home: Home, limits: SqlLimits) -> None:
        self._home, self.limits = home, limits
        self._slots = threading.BoundedSemaphore(limits.at_once)
        self._lock = threading.Lock()
        self._spare: subprocess.Popen[str] | None = None
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._cancelled: set[str] = set()
        self._is_closed = False

    def ask(self, asked: Mapping[str, Any], id_: str) -> dict[str, Any]:
        """Run a query, and return what its process printed: an answer, or a fault.

        Raises:
            CONSOLE_BUSY: As many run as may.
            SQL_CANCELLED: It was cancelled.
            SQL_OVER_LIMIT: Its process took too long, or was killed by the system.
        """
        with self._slot(), self._process(id_) as process:
            try:
                printed, _ = process.communicate(
                    json.dumps(asked) + "\n", self.limits.time_s + _GRACE_S
                )
            except subprocess.TimeoutExpired:
                limit = f"{self.limits.time_s} seconds"
                raise over_limit(limit, "--timeout") from None
            except OSError:
                printed = ""
        if not printed:
            if id_ in self._cancelled:
                self._cancelled.discard(id_)
                raise fault("SQL_CANCELLED")
            raise over_memory(self.limits.memory_mb)
        return dict(json.loads(printed))

    def cancel(self, id_: str) -> bool:
        """Stop a query; return whether it ran."""
        with self._lock:
            process = self._running.get(id_)
            if process is None:
                return False
            self._cancelled.add(id_)
            process.kill()
        return True

    def warm(self) -> None:
        """Start the process of the next query."""
        with self._lock:
            if self._spare is None and not self._is_closed:
                self._spare = self._start()

    def close(self) -> None:
        """Stop every query."""
        with self._lock:
            self._is_closed = True
            for process in (*self._running.values(), *filter(None, [self._spare])):
                _end(process)
            self._spare = None

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._slots.acquire(timeout=_WAIT_S):
            raise fault("CONSOLE_BUSY", running=self.limits.at_once)
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def _process(self, id_: str) -> Iterator[subprocess.Popen[str]]:
        with self._lock:
            spare, self._spare = self._spare, None
            if spare and spare.poll() is not None:
                _end(spare)
                spare = None
            process = spare or self._start()
            self._running[id_] = process
        try:
            yield process
        finally:
            with self._lock:
                self._running.pop(id_, None)
            _end(process)
            self.warm()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "millstream.console.sql_child"]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        process = subprocess.Popen(
            command,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
            **pipes,
        )
        assert process.stdin is not None
        limits = {name: getattr(self.limits, name) for name in SqlLimits.__slots__}
        process.stdin.write(json.dumps({**limits, "home": str(self._home.path)}) + "\n")
        process.stdin.flush()
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe and not pipe.closed:
            pipe.close()
