"""Receivers: threads that read records which cannot be read twice; restarted when they fail."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from millstream.errors import InboxClosedError, MillstreamError, fault
from millstream.model.connector import Receiving
from millstream.observe import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.landing.inbox import Inbox
    from millstream.model.dataset import Source
    from millstream.run.supervise import Restart

_ENDS_WITHIN_S = 5.0


class Reception:
    """The receiver of one source, at work."""

    def __init__(
        self,
        source: Source,
        inbox: Inbox,
        restart: Restart,
        on_event: Callable[[Event], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._inbox, self._restart, self._on_event = source, inbox, restart, on_event
        self._clock = clock
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop receiving; a receiver that does not return in time is abandoned, unacknowledged."""
        self._inbox.close()
        self._thread.join(_ENDS_WITHIN_S)

    def _receive(self) -> None:
        assert isinstance(self._source.connector, Receiving)
        failures = 0
        while not self._inbox.is_closed:
            began = self._clock()
            try:
                self._source.connector.receive(self._inbox)
            except InboxClosedError:
                return
            except Exception as error:
                lasted_s = self._clock() - began
                failures = 1 if lasted_s > self._restart.longest_pause_s else failures + 1
                self._pause(error, self._restart.pause_s(failures))
            else:
                return

    def _pause(self, error: Exception, seconds: float) -> None:
        source = self._source
        if isinstance(error, MillstreamError):
            reported = error.located(source.connector_at)
        else:
            cause = f"{type(error).__name__}: {error}"
            reported = fault("RECEIVER_FAILED", at=source.at, source=source.name, cause=cause)
        self._on_event(Event("receiver_failed", source.name, f"again in {seconds:.0f} s", reported))
        self._inbox.wait(seconds)
