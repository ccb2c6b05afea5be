"""The progress of a running app: its queries, events and work done."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from millstream.errors import concealed
from millstream.lake.frontier import moment
from millstream.observe import Progress
from millstream.views.json_text import FaultView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from millstream.lake.log import Facts
    from millstream.observe import Event
    from millstream.observe.measure import Measure
    from millstream.run.supervise import Supervised
    from millstream.spark.jobs import LongJob

_SET_ASIDE = ("late", "future", "malformed", "rejected", "quarantined", "dropped", "blank")
_RULE = "rule: "
_FAR_BEHIND_S = 10.0
"""A query that has so much to read is shown to be behind."""


@dataclass(frozen=True, slots=True)
class UnderWayView:
    """How far a batch is that takes long: the jobs of it that run now."""

    done: int
    tasks: int
    rows: int
    """What these have read so far."""
    seconds: float
    remaining_s: float | None
    """At the speed so far; None if no task is done."""

    @staticmethod
    def of(jobs: Sequence[LongJob]) -> UnderWayView | None:
        """Add up the jobs of one query."""
        if not jobs:
            return None
        done, tasks = sum(job.done for job in jobs), sum(job.tasks for job in jobs)
        seconds = max(job.seconds for job in jobs)
        remaining_s = round(seconds * (tasks - done) / done, 1) if done else None
        rows = sum(job.rows for job in jobs)
        return UnderWayView(done, tasks, rows, round(seconds, 1), remaining_s)


@dataclass(frozen=True, slots=True)
class BehindView:
    """What a query has yet to read, if that takes long."""

    rows: int
    left_s: float
    """At the rate of its last batches."""

    @staticmethod
    def of(measure: Measure | None) -> BehindView | None:
        """Show what is measured; None if it is not known, or read soon."""
        if measure is None or (measure.left_s or 0.0) < _FAR_BEHIND_S:
            return None
        return BehindView(measure.behind_rows or 0, round(measure.left_s or 0.0, 1))


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A running source or table, after its last batch."""

    name: str
    kind: str
    trigger: str
    state: str
    batch: int
    """The last one committed that Spark has reported on, if it does; -1 before the first."""
    input_rate: float | None = None
    """Rows a second of that batch; None if Spark has not reported on it."""
    output_rate: float | None = None
    """Rows a second that were right (of a source) or written (of a table)."""
    batch_ms: int | None = None
    complete_to: datetime | None = None
    """The frontier: no change to come stems from an earlier event."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Rows of the batch that were quarantined, by reason."""
    totals: Mapping[str, int] | None = None
    """The same over all batches; None of a live source, whose batches are not added up."""
    under_way: UnderWayView | None = None
    """The batch that runs now, if it takes long."""
    behind: BehindView | None = None
    """What is there to be read, if that takes long."""

    @property
    def aside(self) -> tuple[Mapping[str, int], str]:
        """Rows that were quarantined, and whether they are those of one batch."""
        if self.totals is None:
            return self.verdicts, "in its last batch"
        return self.totals, "in total"


@dataclass(frozen=True, slots=True)
class WorkView:
    """What one query did during a run."""

    name: str
    kind: str
    batches: int
    input: int
    output: int
    """Rows that were right (of a source) or written (of a table)."""


@dataclass(frozen=True, slots=True)
class EventView:
    """Something that happened to a query."""

    kind: str
    query: str
    detail: str
    fault: FaultView | None

    @staticmethod
    def of(event: Event) -> EventView:
        """Show an event."""
        fault = FaultView.of(event.error) if event.error else None
        return EventView(event.kind, event.query, concealed(event.detail), fault)


def look(
    queries: Iterable[Supervised],
    before: Mapping[str, DatasetView],
    jobs: Iterable[LongJob] = (),
    measures: Mapping[str, Measure] = MappingProxyType({}),
) -> tuple[DatasetView, ...]:
    """Show the running queries, and the live sources they read.

    Args:
        queries: The queries of a run.
        before: What the last look showed, by name. It stays until Spark has reported on the next
            batch; without it, a batch that Spark has not reported on has no rates.
        jobs: What Spark runs now, if it takes long.
        measures: How the datasets do, by name.
    """
    long = [*jobs]
    views: dict[str, DatasetView] = {}
    for query in queries:
        spoken = query.running.progress
        progress = Progress.of(spoken) if spoken else None
        for live in _live_sources(query, progress):
            views.setdefault(live.name, live)
        name = query.query.name
        view = _dataset(query, progress, before.get(name))
        # Without batches, jobs never end.
        is_in_batches = not query.trigger.is_row_wise
        under_way = UnderWayView.of([j for j in long if j.query == name and is_in_batches])
        behind = BehindView.of(measures.get(name))
        views[name] = replace(view, under_way=under_way, behind=behind)
    return tuple(views.values())


def work_done(queries: Iterable[Supervised], before: Mapping[str, Facts]) -> tuple[WorkView, ...]:
    """Return what each query did since `before`."""
    done = []
    for query in queries:
        name, facts, earlier = query.query.name, query.running.facts, before[query.query.name]
        output = _output(query)
        gained = {key: n - earlier.totals.get(key, 0) for key, n in facts.totals.items()}
        done.append(
            WorkView(
                name,
                _kind(query),
                facts.batch - earlier.batch,
                gained.get("input", 0),
                gained.get(output, 0),
            )
        )
    return tuple(done)


def _dataset(
    query: Supervised, progress: Progress | None, before: DatasetView | None
) -> DatasetView:
    facts = query.running.facts
    state = "stale" if query.is_stale else query.state
    if before and facts.batch > before.batch and _is_awaited(query, progress, facts.batch):
        return replace(before, state=state)
    rates: dict[str, Any] = {}
    if progress and progress.batch == facts.batch:
        rates = _rates(progress, facts.counts.get(_output(query), 0))
    return DatasetView(
        query.query.name,
        _kind(query),
        str(query.trigger),
        state,
        facts.batch,
        **rates,
        complete_to=moment(facts.frontier),
        verdicts=set_aside(facts.counts),
        totals=set_aside(facts.totals),
    )


def _is_awaited(query: Supervised, progress: Progress | None, batch: int) -> bool:
    """Whether a batch is committed that Spark has yet to report on, as it does a moment later."""
    reports = query.query.kind != "recompute" and not query.trigger.is_row_wise
    return reports and (progress is None or progress.batch == batch - 1)


def _rates(progress: Progress, output: int) -> dict[str, Any]:
    if progress.input_rows:
        # Of a first batch Spark does not know over what time its rows arrived.
        rate = progress.input_rate or progress.processed_rate
        output_rate = rate * output / progress.input_rows
    else:
        rate, output_rate = 0.0, output * 1000 / max(progress.duration_ms, 1)
    return {"input_rate": rate, "output_rate": output_rate, "batch_ms": progress.duration_ms}


def set_aside(counts: Mapping[str, int]) -> dict[str, int]:
    """Count the quarantined rows, by reason."""
    aside = {name: counts[name] for name in _SET_ASIDE if counts.get(name)}
    broken = sum(count for name, count in counts.items() if name.startswith(_RULE))
    return aside or ({"violations": broken} if broken else {})


def _live_sources(query: Supervised, progress: Progress | None) -> Iterable[DatasetView]:
    for name, counts in (progress.observed if progress else {}).items():
        if "malformed" in counts:
            yield DatasetView(
                name, "live", str(query.trigger), query.state, -1, verdicts=set_aside(counts)
            )


def _kind(query: Supervised) -> str:
    return type(query.query.dataset).__name__.lower()


def _output(query: Supervised) -> str:
    return "ok" if _kind(query) == "source" else "written"
