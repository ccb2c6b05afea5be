"""Watches objectives: an event when one is no longer met, and one when it is met again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.model.objective import OBJECTIVES
from millstream.observe.measure import lag_of
from millstream.observe.objective import Breach, breaches
from millstream.observe.record import EventRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from millstream.model.graph import Graph
    from millstream.observe.history import History

_MOST_EVENTS = 1000
_MET_FOR = timedelta(seconds=30)
_OBJECTIVE = {"stale": "freshness", "behind": "behind", "failed_rows": "failed_rows"}
_RECOVERED = "recovered"


class ObjectiveWatch:
    """The objectives of an app, and which of them are not met; history says what was so before."""

    def __init__(
        self, graph: Graph, history: History, run: int, *, met_for: timedelta = _MET_FOR
    ) -> None:
        self._history, self._run, self._met_for = history, run, met_for
        self._datasets = tuple(
            dataset
            for dataset in graph.queried
            if any(getattr(dataset.options, objective) for objective in OBJECTIVES)
        )
        self._open = self._open_ones() if self._datasets else set()
        self._met_since: dict[tuple[str, str], datetime] = {}

    def look(self, now: datetime) -> Iterator[EventRecord]:
        """Return what has changed since the last look.

        An objective counts as met again when it has been for a while: around a limit, one event
        is enough.
        """
        lasts = self._history.lasts() if self._datasets else {}
        found: dict[tuple[str, str], Breach] = {}
        for dataset in self._datasets:
            measure = lag_of(self._history, lasts, dataset.name, now)
            for breach in breaches(dataset, measure, self._history, now):
                found[dataset.name, _OBJECTIVE[breach.kind]] = breach
        for key in found.keys() - self._open:
            self._open.add(key)
            yield self._event(found[key].kind, key, found[key].why, now)
        for key in sorted(self._open):
            if key in found:
                self._met_since.pop(key, None)
            elif now - self._met_since.setdefault(key, now) >= self._met_for:
                self._open.discard(key)
                yield self._event(_RECOVERED, key, f"{key[1]} is met again", now)

    def _event(self, kind: str, key: tuple[str, str], detail: str, now: datetime) -> EventRecord:
        return EventRecord(now, kind, key[0], detail, self._run, code=key[1])

    def _open_ones(self) -> set[tuple[str, str]]:
        """Return the objectives that were not met when history was last written."""
        last: dict[tuple[str, str], str] = {}
        for event in self._history.events(most=_MOST_EVENTS):
            if event.code is not None and event.code in OBJECTIVES:
                last.setdefault((event.dataset, event.code), event.kind)
        return {key for key, kind in last.items() if kind != _RECOVERED}
