"""What commands report, besides a running app."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.errors import catalogue
from millstream.lake.failed_queries import read_troubles
from millstream.views.json_text import FaultView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.checkpoint import Checkpoint, Finding
    from millstream.doctor import Diagnosis
    from millstream.errors import MillstreamError
    from millstream.errors.page import Page
    from millstream.lake.failed_queries import Trouble
    from millstream.lake.home import Home
    from millstream.lake.ledger import Ledger, ServeEntry, SourceEntry, TableEntry
    from millstream.model.dataset import Alert, Serve
    from millstream.model.graph import Graph
    from millstream.repair.mend import Remedy
    from millstream.settings import Setting
    from millstream.trial.batch import BatchTable, Comparison


@dataclass(frozen=True, slots=True)
class ErrorView:
    """A kind of error: what it means and who must act."""

    code: str
    summary: str
    branch: str
    exit_code: int
    is_transient: bool
    """Whether trying again, with nothing changed, may succeed."""

    @staticmethod
    def of(page: Page) -> ErrorView:
        """Show what a page says."""
        branch, exit_code = catalogue.HEADINGS[page.kind], catalogue.exit_code(page.kind)
        return ErrorView(page.code, page.means, branch, exit_code, page.transient)


@dataclass(frozen=True, slots=True)
class AppView:
    """An app by its numbers."""

    name: str
    sources: int
    views: int
    tables: int
    models: int
    streams: int
    alerts: int
    serves: int

    @staticmethod
    def of(graph: Graph) -> AppView:
        """Show a graph."""
        tables = [table for table in graph.tables if table.kind == "table"]
        kept = (tables, graph.models, graph.streams, graph.alerts)
        kinds = (graph.sources, graph.views, *kept, graph.serves)
        return AppView(graph.app, *map(len, kinds))

    def __str__(self) -> str:
        kinds = ("source", "view", "table", "model", "stream", "alert", "serve")
        numbers = ((getattr(self, f"{kind}s"), kind) for kind in kinds)
        parts = (f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in numbers if n)
        return f"{self.name}: {', '.join(parts) or 'nothing declared'}"


@dataclass(frozen=True, slots=True)
class CheckView:
    """An app and all that is wrong with it."""

    app: AppView
    faults: tuple[FaultView, ...]
    warnings: tuple[FaultView, ...]
    """What it can run with, and should not for ever."""
    guarantees: Mapping[str, str | None]
    """How often the rows of each served answer or alert arrive."""
    learning: Mapping[str, str] = field(default_factory=dict)
    """How each model learns, and why."""

    @staticmethod
    def of(graph: Graph, faults: Iterable[MillstreamError]) -> CheckView:
        """Show what a check found."""
        leaving: tuple[Alert | Serve, ...] = (*graph.alerts, *graph.serves)
        guarantees = {dataset.name: graph.guarantee_of(dataset) for dataset in leaving}
        found = [(fault.is_warning, FaultView.of(fault)) for fault in faults]
        shown, warnings = (
            tuple(f for w, f in found if w is is_warning) for is_warning in (False, True)
        )
        learning = {model.name: graph.way_of(model) for model in graph.models}
        return CheckView(AppView.of(graph), shown, warnings, guarantees, learning)


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What became of every row of a home."""

    home: str
    is_balanced: bool
    sources: tuple[SourceEntry, ...]
    tables: tuple[TableEntry, ...]
    serves: tuple[ServeEntry, ...]
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    """Queries that did not end well in the last run, by name: their tables lack rows."""

    @property
    def is_complete(self) -> bool:
        """Whether every query ended well in the last run, so that nothing is left to compute."""
        return not self.troubles

    @staticmethod
    def of(home: Home, ledger: Ledger) -> LedgerView:
        """Show a ledger."""
        entries = (ledger.sources, ledger.tables, ledger.serves)
        return LedgerView(str(home.path), ledger.is_balanced, *entries, read_troubles(home))


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """The checkpoint of one query, and what is wrong with it."""

    query: str
    holds: int
    """The last batch of the table; -1 before the first."""
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether a run can continue from it."""
        return all(finding.is_harmless for finding in self.findings)


@dataclass(frozen=True, slots=True)
class CheckpointsView:
    """All checkpoints of a home."""

    home: str
    checkpoints: tuple[CheckpointView, ...]

    @property
    def is_sound(self) -> bool:
        """Whether a run can continue from all of them."""
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
    """Tables computed as a batch, and how the stream's tables compare with them."""

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
class NewView:
    """An app that was made."""

    name: str
    folder: str
    template: str
    files: tuple[str, ...]
