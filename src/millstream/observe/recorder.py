"""Writes the history of a run, in a thread of its own: no batch waits for it."""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError, OvertakenError, concealed, fault
from millstream.observe import Event
from millstream.observe.batch_record import missing_records
from millstream.observe.collector import Collector, Committed
from millstream.observe.expectation_watch import ExpectationWatch
from millstream.observe.export import Export, exporters
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.objective_watch import ObjectiveWatch
from millstream.observe.reactions import Reactions
from millstream.observe.record import BatchRecord, EventRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from millstream.lake.home import Home
    from millstream.lake.log import Facts
    from millstream.model.graph import Graph
    from millstream.observe.collector import ReportedQuery
    from millstream.observe.history_writer import Record
    from millstream.observe.record import RunRecord

_EVERY_S = 0.25
_JUDGED_EVERY_S = 1.0
_MOST_WAITING = 10_000
"""Records that wait while history cannot be written; later ones are left out, and read from the
tables at the next start."""


class Recorder:
    """Records the batches and events of a run in its home."""

    def __init__(
        self, graph: Graph, home: Home, run: RunRecord, on_event: Callable[[Event], None]
    ) -> None:
        self._graph, self._home, self._run, self._on_event = graph, home, run, on_event
        self._writer = HistoryWriter(home.history, self.on_event)
        self._collector = Collector(graph, home, run.id)
        self._expectations = ExpectationWatch()
        self._reactions = Reactions(graph.reactions, self.on_event)
        self._export = Export(lambda: exporters(graph, home, run), self.on_event)
        self._incoming: queue.SimpleQueue[Committed | EventRecord] = queue.SimpleQueue()
        self._waiting: list[Record] = [run]
        self._runnings: Sequence[ReportedQuery] = ()
        self._next_judgement = 0.0
        self._changes: list[EventRecord] = []
        """Objectives that are no longer met, or met again, and not reported yet."""
        self._notify: Callable[[Sequence[EventRecord]], bool] = lambda _: True
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def on_event(self, event: Event) -> None:
        """Record an event, and pass it on."""
        self._incoming.put(event_record(event, self._run.id))
        self._on_event(event)

    def on_commit(self, name: str, facts: Facts) -> None:
        """Record a batch, as soon as Spark has reported on it."""
        self._incoming.put(Committed.now(name, facts))

    def begin(
        self, runnings: Sequence[ReportedQuery], notify: Callable[[Sequence[EventRecord]], bool]
    ) -> None:
        """Record what history lacks of earlier runs, then what these queries do.

        Args:
            runnings: The queries.
            notify: Reports which objectives are not met, or met again; returns whether it could.
        """
        self._runnings, self._notify = runnings, notify
        self._thread = threading.Thread(target=self._work, name="history", daemon=True)
        self._thread.start()

    def end(self, outcome: str, error: BaseException | None = None) -> None:
        """Record the end of the run, and all that is not recorded yet."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        if isinstance(error, MillstreamError):
            self._incoming.put(event_record(Event("run_failed", "", error=error), self._run.id))
        self._take(is_last=True)
        self._reactions.close()
        self._export.close()
        # What those two have reported meanwhile.
        self._take(is_last=True)
        self._waiting.append(self._app_event("run_ended", outcome))
        ended = replace(self._run, ended_at=datetime.now(UTC), outcome=outcome)
        self._writer.write([*self._waiting, ended])
        self._writer.close()

    def _work(self) -> None:
        try:
            self._add(self._missed())
            self._flush()
            with History.read_only(self._home.history) as history:
                objectives = ObjectiveWatch(self._graph, history, self._run.id)
                while not self._ending.is_set():
                    self._take(is_last=False)
                    self._flush()
                    self._judge(objectives)
                    self._ending.wait(_EVERY_S)
        except Exception as error:
            # A fault of ours; the queries do not depend on history.
            why = f"{type(error).__name__}: {error}"
            stopped = fault("HISTORY_UNWRITABLE", file=str(self._home.history), why=why)
            self._on_event(Event("history_stopped", "", error=stopped))

    def _take(self, *, is_last: bool) -> None:
        """Add what has happened since the last look to what is to be written."""
        records: list[Record] = []
        while not self._incoming.empty():
            item = self._incoming.get()
            if isinstance(item, Committed):
                self._collector.add(item)
            else:
                records.append(item)
        records += self._collector.records(self._runnings, is_last=is_last)
        self._add(records)

    def _add(self, records: Iterable[Record]) -> None:
        """Add records to what is to be written, with the events that they are."""
        for record in records:
            if len(self._waiting) < _MOST_WAITING:
                self._waiting.append(record)
            self._export.add(record)
            if isinstance(record, EventRecord):
                self._reactions.add(record)
            elif isinstance(record, BatchRecord) and (found := self._expectations.event_of(record)):
                self._add([found])

    def _flush(self) -> None:
        if self._waiting and self._writer.write(self._waiting):
            self._waiting = []

    def _judge(self, objectives: ObjectiveWatch) -> None:
        """Judge the objectives, now and then; report which are not met, or met again."""
        if time.monotonic() < self._next_judgement:
            return
        self._next_judgement = time.monotonic() + _JUDGED_EVERY_S
        self._changes += objectives.look(datetime.now(UTC))
        # Sent before they are recorded: if the driver dies in between, they are sent again.
        with suppress(OvertakenError):
            if self._changes and self._notify(self._changes):
                self._add(self._changes)
                self._changes = []

    def _missed(self) -> Iterator[Record]:
        """Return what earlier drivers did and did not record, as one that was killed."""
        yield self._app_event("run_started", f"pid {self._run.pid} on {self._run.host}")
        with History.read_only(self._home.history) as history:
            for run in history.runs(most=1):
                if run.ended_at is None and run.id != self._run.id:
                    text = f"the driver of run {run.id}, pid {run.pid} on {run.host}, did not stop"
                    yield self._app_event("driver_died", f"{text} by itself")
        for dataset in self._graph.ordered:
            last = self._writer.last(dataset.name)
            with suppress(MillstreamError):
                yield from missing_records(self._home, dataset.name, dataset.kind, last)

    def _app_event(self, kind: str, detail: str) -> EventRecord:
        return EventRecord(datetime.now(UTC), kind, "", detail, self._run.id)


def event_record(event: Event, run: int) -> EventRecord:
    """Record an event."""
    record = EventRecord(datetime.now(UTC), event.kind, event.query, concealed(event.detail), run)
    if (error := event.error) is None:
        return record
    file, line = (error.at.file, error.at.line) if error.at else (None, None)
    what, fix = concealed(error.what), concealed(error.fix)
    return replace(record, code=error.code, what=what, fix=fix, file=file, line=line)
