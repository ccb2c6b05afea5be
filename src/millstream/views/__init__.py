"""What the faces show: one shape for `--json`, the terminal and the console."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.errors import catalogue, concealed
from millstream.lake.frontier import moment
from millstream.observe import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from millstream.checkpoint import Checkpoint, Finding
    from millstream.doctor import Diagnosis
    from millstream.errors import MillstreamError
    from millstream.lake.delta import Facts
    from millstream.lake.home import Home
    from millstream.lake.ledger import Ledger, SourceEntry, TableEntry
    from millstream.model.graph import Graph
    from millstream.observe import Event
    from millstream.run.batch import BatchTable, Comparison
    from millstream.run.mend import Remedy
    from millstream.run.supervise import Supervised
    from millstream.settings import Setting

_SET_ASIDE = ("late", "future", "malformed", "rejected", "quarantined", "dropped")
_RULE = "rule: "


@dataclass(frozen=True, slots=True)
class FaultView:
    """An error: what, where and how to fix it."""

    code: str
    what: str
    fix: str
    file: str | None = None
    line: int | None = None

    @staticmethod
    def of(error: MillstreamError) -> FaultView:
        """Show an error."""
        file, line = (error.at.file, error.at.line) if error.at else (None, None)
        return FaultView(error.code, error.what, error.fix, file, line)


@dataclass(frozen=True, slots=True)
class ErrorView:
    """A kind of error: what it means and who must act."""

    code: str
    name: str
    summary: str
    branch: str
    exit_code: int
    is_transient: bool
    """Whether trying again, with nothing changed, may succeed."""

    @staticmethod
    def of(kind: type[MillstreamError]) -> ErrorView:
        """Show a kind of error."""
        branch = catalogue.BRANCHES[catalogue.branch_of(kind)]
        summary = catalogue.summary_of(kind)
        return ErrorView(kind.code, kind.__name__, summary, branch, kind.exit_code, kind.transient)


@dataclass(frozen=True, slots=True)
class AppView:
    """An app by its numbers."""

    name: str
    sources: int
    views: int
    tables: int
    serves: int

    @staticmethod
    def of(graph: Graph) -> AppView:
        """Show a graph."""
        kinds = (graph.sources, graph.views, graph.tables, graph.serves)
        return AppView(graph.app, *map(len, kinds))

    def __str__(self) -> str:
        kinds = ("source", "view", "table", "serve")
        numbers = ((getattr(self, f"{kind}s"), kind) for kind in kinds)
        parts = (f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in numbers if n)
        return f"{self.name}: {', '.join(parts) or 'nothing declared'}"


@dataclass(frozen=True, slots=True)
class CheckView:
    """An app and all that is wrong with it."""

    app: AppView
    faults: tuple[FaultView, ...]
    guarantees: Mapping[str, str | None]
    """How often the rows of each served answer arrive."""

    @staticmethod
    def of(graph: Graph, faults: Iterable[MillstreamError]) -> CheckView:
        """Show what a check found."""
        guarantees = {serve.name: graph.guarantee_of(serve) for serve in graph.serves}
        shown = tuple(FaultView.of(fault) for fault in faults)
        return CheckView(AppView.of(graph), shown, guarantees)


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A running source or table, after its last batch."""

    name: str
    kind: str
    trigger: str
    state: str
    batch: int
    """The last one committed; -1 before the first."""
    input_rate: float | None = None
    """Rows a second."""
    output_rate: float | None = None
    """Rows a second that were right (of a source) or written (of a table)."""
    batch_ms: int | None = None
    complete_to: datetime | None = None
    """The frontier: no change to come stems from an earlier event."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Rows that were set aside, by why, over all batches; of a live source, of its last batch."""


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


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What became of every row of a home."""

    home: str
    is_balanced: bool
    sources: tuple[SourceEntry, ...]
    tables: tuple[TableEntry, ...]

    @staticmethod
    def of(home: Home, ledger: Ledger) -> LedgerView:
        """Show a ledger."""
        return LedgerView(str(home.path), ledger.is_balanced, ledger.sources, ledger.tables)


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """The checkpoint of one query, and what is wrong with it."""

    query: str
    holds: int
    """The last batch of the table; -1 before the first."""
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether a run can go on from it."""
        return all(finding.is_harmless for finding in self.findings)


@dataclass(frozen=True, slots=True)
class CheckpointsView:
    """All checkpoints of a home."""

    home: str
    checkpoints: tuple[CheckpointView, ...]

    @property
    def is_sound(self) -> bool:
        """Whether a run can go on from all of them."""
        return all(checkpoint.is_sound for checkpoint in self.checkpoints)

    @staticmethod
    def of(home: Home, checkpoints: Mapping[str, Checkpoint]) -> CheckpointsView:
        """Show what was found."""
        found = (CheckpointView(n, c.held.batch, c.findings) for n, c in checkpoints.items())
        return CheckpointsView(str(home.path), tuple(found))


@dataclass(frozen=True, slots=True)
class RemedyView:
    """One step of a repair."""

    query: str
    what: str
    tables: tuple[str, ...]
    """What is moved aside, to be computed again."""


@dataclass(frozen=True, slots=True)
class RepairView:
    """What a repair has done, or would do."""

    home: str
    is_done: bool
    remedies: tuple[RemedyView, ...]
    aside: str | None = None
    """Where everything is that was removed or rewritten."""

    @staticmethod
    def of(home: Home, remedies: Iterable[Remedy]) -> RepairView:
        """Show what a repair would do."""
        steps = (RemedyView(remedy.query, remedy.what, remedy.tables) for remedy in remedies)
        return RepairView(str(home.path), is_done=False, remedies=tuple(steps))


@dataclass(frozen=True, slots=True)
class BatchView:
    """Tables computed as a batch, and how the stream's tables stand to them."""

    into: str | None
    """The home they are kept in, if they are."""
    tables: tuple[BatchTable, ...]
    compared: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class SettingView:
    """A setting, and where it came from."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class SettingsView:
    """All settings of an app, and what is wrong with them."""

    settings: tuple[SettingView, ...]
    faults: tuple[FaultView, ...]

    @staticmethod
    def of(settings: Mapping[str, Setting], faults: Iterable[MillstreamError]) -> SettingsView:
        """Show settings."""
        shown = (SettingView(name, str(s.value), s.origin) for name, s in settings.items())
        return SettingsView(tuple(shown), tuple(FaultView.of(fault) for fault in faults))


@dataclass(frozen=True, slots=True)
class DoctorView:
    """How the surroundings of an app are."""

    diagnoses: tuple[Diagnosis, ...]

    @property
    def is_well(self) -> bool:
        """Whether an app can run."""
        return all(diagnosis.state != "bad" for diagnosis in self.diagnoses)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class NewView:
    """An app that was made."""

    name: str
    folder: str
    template: str
    files: tuple[str, ...]


def to_json(view: object) -> str:
    """Write a view as one line of JSON."""
    return json.dumps(_shape(view), default=_to_text, ensure_ascii=False)


def look(
    queries: Iterable[Supervised], before: Mapping[str, DatasetView]
) -> tuple[DatasetView, ...]:
    """Show the running queries, and the live sources they read.

    Args:
        queries: The queries of a run.
        before: What the last look showed, by name.
    """
    views: dict[str, DatasetView] = {}
    for query in queries:
        spoken = query.running.progress
        progress = Progress.of(spoken) if spoken else None
        for live in _live_sources(query, progress):
            views.setdefault(live.name, live)
        views[query.query.name] = _dataset(query, progress, before.get(query.query.name))
    return tuple(views.values())


def work_done(queries: Iterable[Supervised], before: Mapping[str, Facts]) -> tuple[WorkView, ...]:
    """Say what each query did since `before`."""
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
    rate = _input_rate(progress)
    return DatasetView(
        query.query.name,
        _kind(query),
        str(query.trigger),
        "stale" if query.is_stale else query.state,
        facts.batch,
        input_rate=rate,
        output_rate=_output_rate(query, progress, rate, before),
        batch_ms=progress.duration_ms if progress else None,
        complete_to=moment(facts.frontier),
        verdicts=set_aside(facts.totals),
    )


def _input_rate(progress: Progress | None) -> float | None:
    if progress is None:
        return None
    # Of a first batch Spark does not know over what time its rows arrived.
    return progress.input_rate or (progress.processed_rate if progress.input_rows else 0.0)


def _output_rate(
    query: Supervised, progress: Progress | None, rate: float | None, before: DatasetView | None
) -> float | None:
    if progress is None or rate is None:
        return None
    if not progress.input_rows:
        return 0.0
    facts = query.running.facts
    if facts.batch != progress.batch:  # The one is a batch ahead of the other.
        return before.output_rate if before else None
    return rate * facts.counts.get(_output(query), 0) / progress.input_rows


def set_aside(totals: Mapping[str, int]) -> dict[str, int]:
    """Say how many rows were set aside, by why."""
    aside = {name: totals[name] for name in _SET_ASIDE if totals.get(name)}
    broken = sum(count for name, count in totals.items() if name.startswith(_RULE))
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


def _shape(value: object) -> object:
    """Give the fields of a view, and the judgements (`is_…`) it makes of them."""
    if isinstance(value, Mapping):
        return {str(key): _shape(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shape(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no numbers for these.
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if not is_dataclass(value):
        return value
    names = [f.name for f in fields(value)]
    names += [n for n in dir(value) if n.startswith("is_") and n not in names]
    return {name: _shape(getattr(value, name)) for name in names}


def _to_text(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, timedelta):
        return f"PT{value.total_seconds():g}S"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
