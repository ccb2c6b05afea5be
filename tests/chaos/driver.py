"""One driver in a process of its own: started, watched, paused, killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from tests.chaos.process import descendants, jvm_of, workers_of
from tests.harness import HarnessError

from millstream.testing.quick_settings import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.chaos.process import Process

_LAST_WORDS = 300
_PROGRAM = ("-m", "millstream.cli")
_HELD_BACK_US = 1_500_000


class Driver:
    """A driver and all that it has started."""

    def __init__(
        self, command: Sequence[str], *, log: Path, environment: Mapping[str, str], traced: bool
    ) -> None:
        self.log, self.started_at = log, time.time()
        self._traced = traced
        self._family: dict[int, Process] = {}
        self._gone_since: float | None = None
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **SHORT_LIVED, **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The number of its process; of the tracer's, if it is traced."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit code, or minus the signal it died of; None while it runs."""
        code = self._process.poll()
        if code is None and self._traced and self._is_gone:
            # A tracer does not notice the end of a process that it holds back.
            return -signal.SIGKILL
        return code

    @property
    def _is_gone(self) -> bool:
        own = [
            p for p in self._family.values() if p.parent == self.pid and p.command[1:3] == _PROGRAM
        ]
        return bool(own) and not any(process.is_alive for process in own)

    @property
    def family(self) -> tuple[Process, ...]:
        """All that it has started and that was ever seen, alive or not."""
        for process in descendants(self.pid) if self._process.poll() is None else ():
            self._family[process.pid] = process
        return tuple(self._family.values())

    @property
    def orphans(self) -> tuple[Process, ...]:
        """What it has started that is still alive."""
        return tuple(process for process in self.family if process.is_alive)

    @property
    def gone_s(self) -> float:
        """For how many seconds it has been known to have ended; 0 while it runs."""
        if self.ended is None:
            return 0.0
        if self._gone_since is None:
            self._gone_since = time.monotonic()
        return time.monotonic() - self._gone_since

    @property
    def jvm(self) -> Process | None:
        """Its JVM, once there is one."""
        return jvm_of(self.family)

    @property
    def workers(self) -> tuple[Process, ...]:
        """Its Python workers, as far as they are alive."""
        return tuple(w for w in workers_of(self.family) if w.is_alive)

    @property
    def last_words(self) -> str:
        """The end of what it has printed."""
        return self.log.read_text(errors="replace")[-_LAST_WORDS:].strip()

    def says(self, words: str) -> bool:
        """Whether it has printed something."""
        return words in self.log.read_text(errors="replace")

    def pause(self) -> None:
        """Stop its Python process, as a machine that hangs does."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill its Python process alone, as by `kill -9`."""
        self._process.kill()
        self._process.wait()

    def kill_all(self) -> None:
        """Kill it and all that it has started, as by a power cut."""
        family = self.family
        self._process.kill()
        for process in family:
            process.send(signal.SIGKILL)
        self._process.wait()


def tracer(call: str, nth: int, log: Path) -> tuple[str, ...]:
    """Make the command that holds a thread back when it is about to make its nth call of a kind.

    Raises:
        HarnessError: There is no strace on this machine.
    """
    # By seccomp strace cannot send a signal, but it can wait: long enough for the reader of its
    # log to kill, and no longer, for the killed process is let go only then.
    return (*counter(log, call), "-e", f"inject={call}:delay_enter={_HELD_BACK_US}:when={nth}")


def counter(log: Path, *calls: str) -> tuple[str, ...]:
    """Make the command that writes down every call of some kinds, by thread.

    Raises:
        HarnessError: There is no strace on this machine.
    """
    if (strace := shutil.which("strace")) is None:
        message = "strace is not installed: apt-get install strace, or use --without call"
        raise HarnessError(message)
    quiet = ("-e", "signal=none")
    # By seccomp, other calls do not stop the process.
    return (strace, "-f", "--seccomp-bpf", "-o", str(log), "-e", f"trace={','.join(calls)}", *quiet)
