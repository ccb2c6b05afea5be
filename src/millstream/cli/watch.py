"""Watches a run from the main thread: shows it, and asks it to stop when it is time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.observe.history import History
from millstream.observe.measure import measured
from millstream.views.progress import DatasetView, EventView, look, work_done

if TYPE_CHECKING:
    import queue
    from collections.abc import Mapping

    from millstream.cli.display import Display
    from millstream.cli.interrupt import Interrupts
    from millstream.errors import MillstreamError
    from millstream.observe import Event
    from millstream.observe.measure import Measure
    from millstream.run.application import ApplicationRun
    from millstream.views.progress import WorkView

_LOOK_EVERY_S = 0.5
_MEASURE_EVERY_S = 2.0


class Watch:
    """What is done at each look at a run."""

    def __init__(
        self,
        running: ApplicationRun,
        events: queue.SimpleQueue[Event],
        display: Display,
        interrupts: Interrupts,
        *,
        limit_s: float | None,
    ) -> None:
        self._running, self._events = running, events
        self._display, self._interrupts = display, interrupts
        self._before = {query.query.name: query.running.facts for query in running.queries}
        self._views: tuple[DatasetView, ...] = ()
        self._next_look = 0.0
        self._history = History.read_only(running.home.history)
        self._measured: Mapping[str, Measure] = {}
        self._next_measures = 0.0
        self._until = None if limit_s is None else time.monotonic() + limit_s
        self._shown_errors: set[int] = set()

    def __call__(self) -> None:
        """Look once."""
        is_new = self._show_events()
        self._stop_if_asked()
        if is_new or time.monotonic() >= self._next_look:
            self._show()

    def end(self) -> tuple[WorkView, ...]:
        """Look for the last time; return what was done."""
        self._history.close()
        self._show_events()
        self._show(last=True)
        return work_done(self._running.queries, self._before)

    def has_shown(self, error: MillstreamError) -> bool:
        """Whether the user has seen an error."""
        return id(error) in self._shown_errors

    def _show(self, *, last: bool = False) -> None:
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        before = {} if last else {view.name: view for view in self._views}
        jobs = () if last else self._running.long_jobs()
        self._views = look(self._running.queries, before, jobs, self._measures(last=last))
        self._display.show(self._views, last=last)

    def _measures(self, *, last: bool) -> Mapping[str, Measure]:
        """Read now and then from the history how far behind the queries are."""
        if last:
            return {}
        if time.monotonic() >= self._next_measures:
            self._next_measures = time.monotonic() + _MEASURE_EVERY_S
            self._measured = measured(self._history, datetime.now(UTC))
        return self._measured

    def _show_events(self) -> bool:
        is_new = False
        while not self._events.empty():
            event = self._events.get()
            is_new = True
            if event.error is not None:
                self._shown_errors.add(id(event.error))
            self._display.show_event(EventView.of(event))
        return is_new

    def _stop_if_asked(self) -> None:
        if self._running.is_asked_to_stop:
            return
        is_time = self._until is not None and time.monotonic() >= self._until
        if self._interrupts.have_come or is_time:
            self._running.ask_to_stop()
            self._display.say("finishing the running batch")
