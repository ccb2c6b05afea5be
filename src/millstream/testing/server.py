"""A real server that lives as long as a test, in a process and a temporary folder of its own."""

from __future__ import annotations

import atexit
import errno
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST = "127.0.0.1"
_STOPS_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.02
_PORTS = range(20_000, 32_768)
"""Below the ephemeral ports of Linux and macOS."""
_CHANCE = random.SystemRandom()
"""Not seeded: with a seed that a test sets, two processes would choose the same ports."""
_CLAIMS = ExitStack()
"""Sockets that stay open as long as this process lives."""
atexit.register(_CLAIMS.close)


class Server:
    """A server that keeps its port and data over a restart, until the end of the `with` block."""

    name: ClassVar[str]
    user: ClassVar[str | None] = None
    """The user it runs as, if this process is root and the server refuses to run as root."""
    starts_within_s: ClassVar[float] = 30.0
    stopped_by: ClassVar[signal.Signals] = signal.SIGINT
    killed_by: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"millstream-{self.name.lower()}-"))
        self.port, self.second_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._user = self.user if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.is_prepared = False

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.folder / "server.log"

    def prepare(self) -> None:
        """Make what must be there before the first start."""

    def command(self) -> Sequence[str]:
        """Return the command that starts it."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Return whether it serves clients."""
        raise NotImplementedError

    def start(self) -> None:
        """Start, and wait until it answers.

        Raises:
            SERVICE_START: It ended, or does not answer.
        """
        if not self.is_prepared:
            self.prepare()
            self.is_prepared = True
        until = time.monotonic() + self.starts_within_s
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.folder, user=self._user
            )
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise fault(
                    "SERVICE_START", server=self.name, cause=last_words(self.log), log=str(self.log)
                )
            time.sleep(_LOOK_EVERY_S)

    def stop(self) -> None:
        """Stop as an operator would; kill if that takes too long."""
        self._end(self.stopped_by)

    def kill(self) -> None:
        """End at once, as a machine that loses power does."""
        self._end(self.killed_by)

    def restart(self) -> None:
        """Start again on the same port, with the same data."""
        self.stop()
        self.start()

    def run(self, *command: str) -> None:
        """Run a program of the server's to its end.

        Raises:
            SERVICE_START: It failed.
        """
        with self.log.open("ab") as log:
            ended = subprocess.run(
                command, stdout=log, stderr=log, cwd=self.folder, user=self._user, check=False
            )
        if ended.returncode != 0:
            raise fault(
                "SERVICE_START", server=self.name, cause=last_words(self.log), log=str(self.log)
            )

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, by: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(by)
        try:
            self._process.wait(_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def program(name: str, *, package: str, beside: str = "") -> str:
    """Find a program of a server.

    Args:
        name: The program.
        package: What installs it.
        beside: Folders to look in, if it is not on the path; a pattern.

    Raises:
        SERVICE_MISSING: It is not on this machine.
    """
    if found := shutil.which(name):
        return found
    for folder in sorted(Path("/").glob(beside), reverse=True) if beside else ():
        if (folder / name).exists():
            return str(folder / name)
    raise fault("SERVICE_MISSING", program=name, package=package)


def free_ports(count: int) -> tuple[int, ...]:
    """Return ports that are free, and that stay reserved while this process lives.

    No other call returns them, in this process or another, and the system assigns higher ones: so
    a port may stay unused for long.
    """
    found = list[int]()
    while len(found) < count:
        port = _CHANCE.choice(_PORTS)
        if _claim(port):
            found.append(port)
    return tuple(found)


def _claim(port: int) -> bool:
    """Claim a port; return False if another process has it."""
    # The UDP port of the same number marks the claim, and leaves the TCP port to a server.
    claim, probe = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
    with probe:
        try:
            claim.bind((HOST, port))
            probe.bind((HOST, port))
        except OSError as error:
            claim.close()
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    _CLAIMS.enter_context(claim)
    return True


def last_words(log: Path) -> str:
    """Return the last line of a log that does not belong to a stack trace."""
    lines = log.read_text(errors="replace").split("\n")
    messages = (line for line in reversed(lines) if line and not line[0].isspace())
    return next(messages, "its log is empty")
