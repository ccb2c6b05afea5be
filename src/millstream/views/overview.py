"""An app at a glance: whether all is well and, if not, which dataset, since when and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from millstream.check.tables import stored_inputs
from millstream.lake.failed_queries import read_troubles
from millstream.lake.home import QUARANTINE
from millstream.lake.lease import holder_of
from millstream.model.dataset import Serve, Source, Table
from millstream.model.trigger import Trigger
from millstream.observe.measure import Measure, failed_rows, measured
from millstream.observe.objective import breaches, length
from millstream.views.json_text import FaultView
from millstream.views.progress import set_aside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from millstream.lake.failed_queries import Trouble
    from millstream.lake.home import Home
    from millstream.lake.lease import Holder
    from millstream.model.graph import Graph
    from millstream.observe.history import History
    from millstream.observe.record import EventRecord, RunRecord

STATES = ("failing", "stale", "behind", "not running", "ok")
"""What a dataset can be, the worst first."""

_FAR_BEHIND = timedelta(minutes=1)
_EVENTS = 200
"""How many of the last events are searched for when something began."""
_START = "`millstream run` starts it"


@dataclass(frozen=True, slots=True)
class HealthView:
    """Whether a dataset is well."""

    state: str = "ok"
    """`ok`, `behind`, `stale`, `failing` or `not running`."""
    since: datetime | None = None
    why: str = ""
    fix: str = ""
    fault: FaultView | None = None

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong."""
        return self.state == "ok"


@dataclass(frozen=True, slots=True)
class DatasetOverview:
    """A dataset at a glance."""

    name: str
    kind: str
    reads: tuple[str, ...]
    trigger: str | None
    health: HealthView
    batch: int = -1
    """The last one committed; -1 before the first."""
    committed_at: datetime | None = None
    input_rate: float | None = None
    """Rows a second; None if it has had no batch lately, or if nothing runs."""
    output_rate: float | None = None
    batch_ms: int | None = None
    target_ms: int | None = None
    """The interval of its trigger: a batch that takes longer delays the next one."""
    behind_rows: int | None = None
    behind_s: float | None = None
    fresh_s: float | None = None
    """How long ago its last batch was committed."""
    complete_to: datetime | None = None
    watermark: datetime | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    total: int = 0
    """Rows that all batches have written, or that were right of a source."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Rows of the last batch that were set aside, by reason."""
    failed: int = 0
    """Rows of the last batch that could not be read or broke a rule."""
    recent_input: tuple[int, ...] = ()
    """Rows read in each of the last half minutes, the latest last."""
    recent_behind: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class OverviewView:
    """An app at a glance."""

    app: str
    home: str
    now: datetime
    driver: Holder | None
    run: RunRecord | None
    """The run that goes on, or the last one."""
    state: str
    """That of the dataset that is worst."""
    sentence: str
    counts: Mapping[str, int]
    """Datasets by state."""
    datasets: tuple[DatasetOverview, ...]
    damage: str | None = None
    """Why history cannot be read, if it cannot."""

    @staticmethod
    def of(
        home: Home,
        graph: Graph | None,
        history: History,
        *,
        chosen: Collection[str] | None = None,
        now: datetime | None = None,
    ) -> OverviewView:
        """Look at a home, whether its driver runs, has stopped or is dead.

        Args:
            home: Where the app is deployed.
            graph: What it declares, if that is known.
            history: What happened there.
            chosen: Names of datasets to look at; everything if None.
            now: The time.
        """
        return _Look(home, graph, history, now or datetime.now(UTC)).view(chosen)


class _Look:
    """One look at a home: what all its datasets are judged by."""

    def __init__(self, home: Home, graph: Graph | None, history: History, now: datetime) -> None:
        self._home, self._graph, self._history, self._now = home, graph, history, now
        self._driver = holder_of(home)
        self._run = next(iter(history.runs(most=1)), None)
        self._troubles = read_troubles(home)
        self._events = history.events(most=_EVENTS)
        self._measures = measured(history, self._until)

    @property
    def _until(self) -> datetime:
        """Until when there was a driver."""
        if self._driver is not None or self._run is None:
            return self._now
        last = max((r.at for r in self._history.lasts().values()), default=self._run.started_at)
        return self._run.ended_at or last

    def view(self, chosen: Collection[str] | None) -> OverviewView:
        named = [each for each in self._named() if chosen is None or each[0] in chosen]
        datasets = tuple(self._dataset(*each) for each in named)
        counts = Counter(dataset.health.state for dataset in datasets)
        worst = next((state for state in STATES if counts[state]), "ok")
        app = self._graph.app if self._graph else str(self._home.read_manifest()["app"])
        return OverviewView(
            app,
            str(self._home.path),
            self._now,
            self._driver,
            self._run,
            worst,
            _sentence(datasets, worst, self._now),
            {state: counts[state] for state in STATES if counts[state]},
            datasets,
            self._history.damage,
        )

    def _named(self) -> Iterator[tuple[str, Source | Table | Serve | None]]:
        """Return the datasets of the app that run, or without the app those of the home."""
        if self._graph is not None:
            for dataset in self._graph.ordered:
                if isinstance(dataset, Source | Table | Serve):
                    yield dataset.name, dataset
            return
        stored = [name for name in self._home.tables if not name.endswith(QUARANTINE)]
        for name in dict.fromkeys((*stored, *self._measures)):
            yield name, None

    def _dataset(self, name: str, declared: Source | Table | Serve | None) -> DatasetOverview:
        measure = self._measures.get(name, Measure(None))
        trigger = self._graph.trigger_of(declared) if self._graph and declared else None
        interval = Trigger.parse(trigger).interval if trigger else None
        health = self._health(name, declared, measure, interval)
        view = DatasetOverview(
            name, self._kind(name, declared), self._reads(declared), trigger, health
        )
        return _with_measure(view, measure, self._now, interval, runs=self._driver is not None)

    def _kind(self, name: str, declared: Source | Table | Serve | None) -> str:
        if declared is not None:
            return declared.kind
        if self._home.is_served(name):
            return "serve"
        return "source" if self._home.is_landing(name) else "table"

    def _reads(self, declared: Source | Table | Serve | None) -> tuple[str, ...]:
        """Return the datasets that run and that another reads, through views too."""
        if declared is None or self._graph is None:
            return ()
        return stored_inputs(self._graph, declared.name)

    def _health(
        self,
        name: str,
        declared: Source | Table | Serve | None,
        measure: Measure,
        interval: timedelta | None,
    ) -> HealthView:
        trouble = self._troubles.get(name)
        if trouble is not None:
            return self._troubled(name, trouble)
        has_finished = self._run is not None and self._run.outcome == "finished"
        if self._driver is None and not has_finished:
            return self._not_running(measure)
        found = declared and next(breaches(declared, measure, self._history, self._now), None)
        if found:
            state = "failing" if found.kind == "failed_rows" else found.kind
            since = found.since or self._began(name, (found.kind,))
            return HealthView(state, since, found.why, f"`millstream why {name}` says more")
        return _behind(measure, interval) or HealthView()

    def _troubled(self, name: str, trouble: Trouble) -> HealthView:
        fault = FaultView(trouble.code, trouble.what, trouble.fix, trouble.file, trouble.line)
        since = self._began(name, ("query_failed", "restarting", "stale"))
        if trouble.state == "stale":
            return HealthView("stale", since, trouble.what, trouble.fix, fault)
        again = "; it is tried again" if trouble.state == "restarting" and self._driver else ""
        return HealthView("failing", since, trouble.what + again, trouble.fix, fault)

    def _not_running(self, measure: Measure) -> HealthView:
        if self._run is None:
            why = "no driver runs" if measure.last else "it has never run"
            return HealthView("not running", None, why, _START)
        if self._run.ended_at is None:
            why = f"its driver, pid {self._run.pid} on {self._run.host}, died"
            return HealthView("not running", self._until, why, _START)
        return HealthView("not running", self._run.ended_at, "its driver has stopped", _START)

    def _began(self, name: str, kinds: Sequence[str]) -> datetime | None:
        """Return when the last events of these kinds began, without another start in between."""
        began: datetime | None = None
        for event in self._events:
            if event.dataset == name and event.kind in kinds:
                began = event.at
            elif began is not None and _ends(event, name):
                break
        return began


def _ends(event: EventRecord, name: str) -> bool:
    of_dataset = event.dataset == name and event.kind in ("recovered", "finished")
    return of_dataset or event.kind == "run_started"


def _behind(measure: Measure, interval: timedelta | None) -> HealthView | None:
    """Judge what a dataset has to read, without an objective."""
    last, behind_s = measure.last, measure.behind_s or 0.0
    limit = max(_FAR_BEHIND, 3 * (interval or timedelta()))
    if not measure.behind_rows or behind_s <= limit.total_seconds():
        return None
    waits = length(timedelta(seconds=behind_s))
    why = f"{measure.behind_rows:,} rows wait for it, the oldest for {waits}"
    if measure.left_s is not None:
        why += f"; {length(timedelta(seconds=measure.left_s))} of work at this rate"
    fix = "give the driver more cores, or let it take more rows in a batch"
    if interval and last and (last.duration_ms or 0) > interval.total_seconds() * 1000:
        why += f"; its last batch took {last.duration_ms} ms, longer than its trigger"
    return HealthView("behind", None, why, fix)


def _with_measure(
    view: DatasetOverview,
    measure: Measure,
    now: datetime,
    interval: timedelta | None,
    *,
    runs: bool,
) -> DatasetOverview:
    last = measure.last
    if last is None:
        return view
    return replace(
        view,
        batch=last.batch,
        committed_at=last.at,
        input_rate=measure.input_rate if runs else None,
        output_rate=measure.output_rate if runs else None,
        batch_ms=last.duration_ms,
        target_ms=round(interval.total_seconds() * 1000) if interval else None,
        behind_rows=measure.behind_rows,
        behind_s=measure.behind_s,
        fresh_s=max((now - last.at).total_seconds(), 0.0),
        complete_to=last.complete_to,
        watermark=last.watermark,
        state_rows=last.state_rows,
        state_bytes=last.state_bytes,
        total=last.total,
        verdicts=set_aside(last.counts),
        failed=failed_rows(last.counts),
        recent_input=measure.recent_input,
        recent_behind=measure.recent_behind,
    )


def _sentence(datasets: Sequence[DatasetOverview], worst: str, now: datetime) -> str:
    """Say in one sentence how the app is."""
    number = len(datasets)
    if worst == "ok":
        return "the dataset is well" if number == 1 else f"all {number} datasets are well"
    bad = [dataset for dataset in datasets if dataset.health.state == worst]
    first = bad[0].health
    since = f" since {length(now - first.since)}" if first.since else ""
    if worst == "not running":
        return f"nothing runs{since}: {first.why}"
    others = sum(not d.health.is_well for d in datasets) - 1
    more = f"; {others} more {'has' if others == 1 else 'have'} a problem" if others else ""
    return f"{bad[0].name} is {worst}{since}: {first.why}{more}"
