"""`millstream run --log json`: a line for each batch and event, for programs that read logs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.cli.display import PlainDisplay
from millstream.observe.history import History
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from millstream.observe.record import BatchRecord, EventRecord
    from millstream.views.progress import DatasetView, EventView, WorkView
    from millstream.views.report import LedgerView

_ERRORS = ("query_failed", "run_failed", "reaction_failed", "driver_died", "alert_dead")
_QUIET = ("run_started", "run_ended", "started", "finished", "renewed", "recovered")
_MOST_EVENTS = 1000
_MICROSECOND = timedelta(microseconds=1)
_NOT_IN_HISTORY = "history_"


class LogDisplay(PlainDisplay):
    """Prints what history records, in its order, from now on."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._history = History.read_only(path)
        self._last = {name: record.at for name, record in self._history.lasts().items()}
        self._event = max((event.id for event in self._history.events(most=1)), default=0)

    def say(self, sentence: str) -> None:
        """Print nothing: sentences are for people."""

    def show(self, datasets: Sequence[DatasetView], *, last: bool = False) -> None:  # noqa: ARG002
        """Print what has been recorded since the last look."""
        for line in sorted(self._new(), key=lambda line: line["at"]):
            print(to_json(line), flush=True)

    def show_event(self, event: EventView) -> None:
        """Print what cannot be recorded: that history cannot be written."""
        if event.kind.startswith(_NOT_IN_HISTORY):
            print(to_json({"level": "warning", "event": event.kind, "fault": event.fault}))

    def sum_up(self, work: Sequence[WorkView], ledger: LedgerView) -> None:  # noqa: ARG002
        """Print the rest."""
        self.show(())
        self._history.close()

    def _new(self) -> Iterator[dict[str, Any]]:
        for name, record in self._history.lasts().items():
            before = self._last.get(name)
            if before is None or record.at > before:
                since = before + _MICROSECOND if before else None
                for batch in self._history.batches(name, since=since):
                    yield batch_line(batch)
                self._last[name] = record.at
        for event in self._history.events(after_id=self._event, most=_MOST_EVENTS)[::-1]:
            self._event = event.id
            if not event.kind.startswith(_NOT_IN_HISTORY):
                yield event_line(event)


def batch_line(record: BatchRecord) -> dict[str, Any]:
    """Return a batch as a line of the log, without what is not known of it."""
    facts = {name: value for name, value in asdict(record).items() if value not in (None, {})}
    return {"at": facts.pop("at"), "level": "info", "event": "batch", **facts}


def event_line(record: EventRecord) -> dict[str, Any]:
    """Return an event as a line of the log, without what is not known of it."""
    level = "error" if record.kind in _ERRORS else "info" if record.kind in _QUIET else "warning"
    facts = {name: value for name, value in asdict(record).items() if value not in (None, "")}
    del facts["id"]
    return {"at": facts.pop("at"), "level": level, "event": facts.pop("kind"), **facts}
