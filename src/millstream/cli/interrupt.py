"""What Ctrl-C and SIGTERM mean: leave at start-up, finish the batch while queries run."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_SHOW_CURSOR = b"\x1b[?25h\n"
_AGAIN_AFTER_S = 0.05


class Interrupts:
    """The signals that came; nothing is done in the handler that a batch could suffer from."""

    def __init__(self) -> None:
        self._came: int | None = None
        self._is_patient = self._may_be_stopped = False

    def install(self) -> None:
        """Handle Ctrl-C and SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def accept_stop(self) -> None:
        """From now on, SIGTERM is a request of `millstream stop`: to follow it is no failure."""
        self._may_be_stopped = True

    def end_input(self) -> None:
        """From now on, SIGTERM ends a wait for typed input, however early in the wait it comes.

        readline waits in select(), and misses a signal that comes just before the wait begins.
        """
        came, notify = os.pipe()
        os.set_blocking(notify, False)
        signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
        arguments = (came, threading.get_ident())
        threading.Thread(target=self._send_again, args=arguments, daemon=True).start()

    def become_patient(self) -> None:
        """From now on, a first signal asks and a second Ctrl-C leaves at once."""
        self._is_patient = True

    @property
    def have_come(self) -> bool:
        """Whether the user asked to stop."""
        return self._came is not None

    def forget_ctrl_c(self) -> bool:
        """Forget a Ctrl-C that the command has dealt with; return False if SIGTERM came."""
        if self._came == signal.SIGTERM:
            return False
        self._came = None
        return True

    @property
    def are_at_start_up(self) -> bool:
        """Whether the user left before any query ran."""
        return self.have_come and not self._is_patient

    @property
    def exit_code(self) -> int:
        """What a shell expects after a signal: 130 for Ctrl-C, 143 for SIGTERM."""
        if self._may_be_stopped and self._came == signal.SIGTERM:
            return 0
        return 128 + (self._came or signal.SIGINT)

    def _send_again(self, came: int, waiting: int) -> None:
        """Send each SIGTERM again until its handler has run."""
        while number := os.read(came, 1):
            time.sleep(_AGAIN_AFTER_S)
            if number[0] == signal.SIGTERM and self._came != signal.SIGTERM:
                signal.pthread_kill(waiting, signal.SIGTERM)

    def _take(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.have_come and number == signal.SIGINT:
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), _SHOW_CURSOR)
            os._exit(128 + number)
        self._came = number
        if not self._is_patient:
            raise KeyboardInterrupt
