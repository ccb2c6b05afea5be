"""What Ctrl-C and SIGTERM mean: leave at start-up, finish the batch while queries run."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_SHOW_CURSOR = b"\x1b[?25h\n"


class Interrupts:
    """The signals that came; nothing is done in the handler that a batch could suffer from."""

    def __init__(self) -> None:
        self._came: int | None = None
        self._is_patient = False

    def install(self) -> None:
        """Take Ctrl-C and SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def become_patient(self) -> None:
        """From now on, a first signal asks and a second Ctrl-C leaves at once."""
        self._is_patient = True

    @property
    def have_come(self) -> bool:
        """Whether the user asked to stop."""
        return self._came is not None

    @property
    def are_at_start_up(self) -> bool:
        """Whether the user left before any query ran."""
        return self.have_come and not self._is_patient

    @property
    def exit_code(self) -> int:
        """What a shell expects after a signal: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self._came or signal.SIGINT)

    def _take(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.have_come and number == signal.SIGINT:
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), _SHOW_CURSOR)
            os._exit(128 + number)
        self._came = number
        if not self._is_patient:
            raise KeyboardInterrupt
