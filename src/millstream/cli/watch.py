"""Looks at a run from the main thread: shows it, and asks it to stop when it is time."""

from __future__ import annotations

import queue
import time
from typing import TYPE_CHECKING

from millstream.views.live import DatasetView, EventView, look, work_done

if TYPE_CHECKING:
    from millstream.cli.face import Face
    from millstream.cli.interrupt import Interrupts
    from millstream.errors import MillstreamError
    from millstream.observe import Event
    from millstream.run.application import ApplicationRun
    from millstream.views.live import WorkView

_LOOK_EVERY_S = 0.5


class Watch:
    """What is done at each look at a run."""

    def __init__(self, face: Face, interrupts: Interrupts, *, limit_s: float | None) -> None:
        self._face, self._interrupts, self._limit_s = face, interrupts, limit_s
        # Queries tell what happens from their own threads; only the main one prints.
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._views: tuple[DatasetView, ...] = ()
        self._next_look = 0.0
        self._until: float | None = None
        self._told: set[int] = set()

    def tell(self, event: Event) -> None:
        """Take note of what happened, to be shown at the next look."""
        self._events.put(event)

    def begin(self, running: ApplicationRun) -> None:
        """Begin to look at a run."""
        self._running = running
        self._before = {query.query.name: query.running.facts for query in running.queries}
        if self._limit_s is not None:
            self._until = time.monotonic() + self._limit_s
        self._interrupts.become_patient()

    def __call__(self) -> None:
        """Look once."""
        is_new = self._tell_events()
        self._stop_if_asked()
        if is_new or time.monotonic() >= self._next_look:
            self._show()

    def end(self) -> tuple[WorkView, ...]:
        """Look for the last time, and say what was done."""
        self._tell_events()
        self._show(last=True)
        return work_done(self._running.queries, self._before)

    def has_told(self, error: MillstreamError) -> bool:
        """Whether the user has seen an error."""
        return id(error) in self._told

    def _show(self, *, last: bool = False) -> None:
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        before = {} if last else {view.name: view for view in self._views}
        self._views = look(self._running.queries, before)
        self._face.show(self._views, last=last)

    def _tell_events(self) -> bool:
        is_new = False
        while not self._events.empty():
            event = self._events.get()
            is_new = True
            if event.error is not None:
                self._told.add(id(event.error))
            self._face.tell(EventView.of(event))
        return is_new

    def _stop_if_asked(self) -> None:
        if self._running.is_asked_to_stop:
            return
        is_time = self._until is not None and time.monotonic() >= self._until
        if self._interrupts.have_come or is_time:
            self._running.ask_to_stop()
            self._face.say("finishing the running batch")
