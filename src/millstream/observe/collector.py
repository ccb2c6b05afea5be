"""Commits of a run, each completed by what Spark reports on it a moment later."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from py4j.protocol import Py4JError

from millstream.observe import Progress
from millstream.observe.batch_record import (
    ReadPositions,
    batch_record,
    live_record,
    reported_record,
    sent_record,
    with_inputs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.lake.home import Home
    from millstream.lake.log import Facts
    from millstream.model.graph import Graph
    from millstream.observe.record import BatchRecord

_REPORTED_WITHIN_S = 10.0
"""How long after a commit Spark's report on it is waited for."""


class ReportedQuery(Protocol):
    """A query, as far as its batches are recorded."""

    name: str

    @property
    def commits_facts(self) -> bool:
        """Whether each of its batches is a commit with facts; else all that is known is Spark's."""
        ...

    @property
    def waiting(self) -> int | None:
        """How many rows it has left to read, if it knows better than Spark."""
        ...

    @property
    def is_reported(self) -> bool:
        """Whether Spark reports on each of its batches."""
        ...

    def progress_after(self, batch: int) -> tuple[dict[str, Any], ...]:
        """What Spark reported on the batches after one, the earliest first."""
        ...


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch that was committed."""

    name: str
    facts: Facts
    at: datetime
    until: float
    """When no report on it is to be expected any more, by the monotonic clock."""

    @staticmethod
    def now(name: str, facts: Facts) -> Committed:
        """Note a commit."""
        return Committed(name, facts, datetime.now(UTC), time.monotonic() + _REPORTED_WITHIN_S)


class Collector:
    """Makes records of the batches of a run."""

    def __init__(self, graph: Graph, home: Home, run: int) -> None:
        self._kinds = {dataset.name: dataset.kind for dataset in graph.ordered}
        self._live = {source.name for source in graph.sources if source.live}
        self._positions, self._run = ReadPositions(home, self._kinds), run
        self._commits: dict[str, list[Committed]] = {}
        self._recorded: dict[str, int] = {}
        self._latest: dict[str, Facts] = {}
        self._readers: dict[str, str] = {}
        """The query whose batches count as those of a live source: the first that reads it."""

    def add(self, committed: Committed) -> None:
        """Add a commit."""
        self._commits.setdefault(committed.name, []).append(committed)
        self._latest[committed.name] = committed.facts

    def records(self, runnings: Iterable[ReportedQuery], *, is_last: bool) -> Iterator[BatchRecord]:
        """Return the batches on which Spark has reported, or of which no report is expected.

        Args:
            runnings: The queries.
            is_last: Whether to wait for no report any more.
        """
        for running in runnings:
            if not running.commits_facts:
                yield from self._sent(running)
            elif commits := self._commits.pop(running.name, []):
                yield from self._committed(running, commits, is_last=is_last)

    def _committed(
        self, running: ReportedQuery, commits: list[Committed], *, is_last: bool
    ) -> Iterator[BatchRecord]:
        reported = _reported(running, commits[0].facts.batch - 1)
        for done, commit in enumerate(commits):
            progress = reported.get(commit.facts.batch)
            is_awaited = not is_last and time.monotonic() < commit.until and running.is_reported
            if progress is None and is_awaited:
                # The order of batches is kept.
                self._commits[running.name] = commits[done:]
                return
            yield from self._records(commit, progress, running.waiting)

    def _records(
        self, commit: Committed, progress: Progress | None, waiting: int | None
    ) -> Iterator[BatchRecord]:
        name, facts = commit.name, commit.facts
        record = batch_record(name, self._kinds.get(name, "table"), facts, commit.at, self._run)
        if progress is None:
            yield with_inputs(record, facts.inputs, self._latest, self._kinds)
            return
        record = reported_record(record, progress)
        if waiting is not None:
            record = replace(record, behind_rows=waiting)
        record = self._positions.with_read(record, progress.versions, commit.at)
        yield record
        yield from self._of_live(record, progress.observed)

    def _sent(self, running: ReportedQuery) -> Iterator[BatchRecord]:
        reported = _reported(running, self._recorded.get(running.name, -1))
        for batch, progress in reported.items():
            self._recorded[running.name] = batch
            record = sent_record(running.name, progress, self._run)
            yield self._positions.with_read(record, progress.versions, record.at)
            yield from self._of_live(record, progress.observed)

    def _of_live(
        self, record: BatchRecord, observed: Mapping[str, Mapping[str, int]]
    ) -> Iterator[BatchRecord]:
        for name in self._live & observed.keys():
            if self._readers.setdefault(name, record.dataset) == record.dataset:
                yield live_record(name, observed[name], record)


def _reported(running: ReportedQuery, after: int) -> dict[int, Progress]:
    """Return Spark's reports on the batches after one, by batch; none if Spark is gone."""
    try:
        reports = [Progress.of(report) for report in running.progress_after(after)]
    except (Py4JError, OSError):
        return {}
    return {progress.batch: progress for progress in reports if progress.is_batch}
