"""The state of the datasets of a home, read from its files, whether a driver runs or not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from millstream.checkpoint import CheckpointLog
from millstream.errors import MillstreamError
from millstream.lake.failed_queries import read_troubles
from millstream.lake.frontier import moment
from millstream.lake.home import QUARANTINE
from millstream.lake.log import Facts, commits
from millstream.model.dataset import Serve, Source, View
from millstream.observe.history import History
from millstream.views.json_text import FaultView
from millstream.views.models import standing_models
from millstream.views.overview import HealthView, OverviewView
from millstream.views.progress import set_aside

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from datetime import datetime

    from millstream.lake.failed_queries import Trouble
    from millstream.lake.home import Home
    from millstream.lake.lease import Holder
    from millstream.lake.log import Commit
    from millstream.model.dataset import Table
    from millstream.model.graph import Graph
    from millstream.views.models import ModelStandingView


@dataclass(frozen=True, slots=True)
class StandingView:
    """What is stored of a source or table."""

    name: str
    kind: str
    state: str
    """`ran`, `never ran`, `live` (a source that is not stored), `damaged`."""
    is_declared: bool
    """False if the home holds it and the app does not declare it, or no app was named."""
    batch: int = -1
    """The last one committed; -1 before the first."""
    rows: int = 0
    """Rows of the last batch that were right (of a source) or written (of a table)."""
    total: int = 0
    """The same over all batches."""
    version: int | None = None
    committed_at: datetime | None = None
    """When the last batch was."""
    complete_to: datetime | None = None
    """The frontier: no change to come stems from an earlier event."""
    quiet_since: datetime | None = None
    """Since when no row has come, if the clock moves the frontier of an idle source."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Rows that were quarantined, by reason, over all batches."""
    fault: FaultView | None = None
    """What is wrong with it: damage, or why its query did not end well in the last run."""
    trouble: str | None = None
    """`failed`, `restarting` or `stale`, if its query did not end well in the last run."""

    def with_trouble(self, found: Trouble | None) -> StandingView:
        """Add how its query ended, if it did not end well."""
        if found is None:
            return self
        fault = FaultView(found.code, found.what, found.fix, found.file, found.line)
        return replace(self, fault=self.fault or fault, trouble=found.state)

    @staticmethod
    def of(home: Home, name: str, declared: Source | Table | Serve | None = None) -> StandingView:
        """Read the state of one dataset."""
        is_landing = home.is_landing(name) if declared is None else declared.kind == "source"
        kind = declared.kind if declared else "source" if is_landing else "table"
        is_declared = declared is not None
        if declared is not None and declared.live:
            return StandingView(name, kind, "live", is_declared)
        if isinstance(declared, Serve):
            batch = CheckpointLog(home.checkpoint(name)).committed
            state = "never ran" if batch < 0 else "ran"
            return StandingView(name, "serve", state, is_declared, batch=batch)
        try:
            seen = list(_until_batch(home, name))
        except MillstreamError as error:
            fault = FaultView.of(error)
            return StandingView(name, kind, "damaged", is_declared, fault=fault)
        if not seen:
            return StandingView(name, kind, "never ran", is_declared)
        facts = next((commit.facts for commit in seen if commit.facts), Facts())
        output = "ok" if is_landing else "written"
        return StandingView(
            name,
            kind,
            "ran" if facts.batch >= 0 else "never ran",
            is_declared,
            batch=facts.batch,
            rows=facts.counts.get(output, 0),
            total=facts.totals.get(output, 0),
            version=seen[0].version,
            committed_at=seen[-1].at if seen[-1].is_batch else None,
            complete_to=moment(facts.frontier),
            quiet_since=moment(facts.quiet_since),
            verdicts=set_aside(facts.totals),
        )


@dataclass(frozen=True, slots=True)
class StatusView:
    """A home: its driver, and the state of its datasets."""

    app: str
    home: str
    driver: Holder | None
    datasets: tuple[StandingView, ...]
    state: str = "ok"
    """That of the dataset that is worst."""
    sentence: str = ""
    """How the app is."""
    health: Mapping[str, HealthView] = field(default_factory=dict)
    """How each dataset is."""
    models: tuple[ModelStandingView, ...] = ()
    """How good each model is."""

    @staticmethod
    def of(home: Home, graph: Graph | None, chosen: Iterable[str] | None = None) -> StatusView:
        """Read the state of a home.

        Args:
            home: Where the app is deployed.
            graph: What the app declares, if it is known.
            chosen: Names to look at; everything if None.
        """
        wanted = None if chosen is None else set(chosen)
        with History.read_only(home.history) as history:
            overview = OverviewView.of(home, graph, history, chosen=wanted)
        return StatusView.beside(overview, home, graph, wanted)

    @staticmethod
    def beside(
        overview: OverviewView,
        home: Home,
        graph: Graph | None,
        chosen: Container[str] | None = None,
    ) -> StatusView:
        """Read the state of a home that has been looked at."""
        declared = {d.name: d for d in graph.ordered if not isinstance(d, View)} if graph else {}
        stored = [name for name in home.tables if not name.endswith(QUARANTINE)]
        names = [*declared, *(name for name in stored if name not in declared)]
        troubles = read_troubles(home)
        datasets = tuple(
            StandingView.of(home, name, declared.get(name)).with_trouble(troubles.get(name))
            for name in names
            if chosen is None or name in chosen
        )
        return StatusView(
            overview.app,
            overview.home,
            overview.driver,
            datasets,
            overview.state,
            overview.sentence,
            {dataset.name: dataset.health for dataset in overview.datasets},
        )

    def with_models(self, home: Home, graph: Graph | None) -> StatusView:
        """Add how good the models are; those whose tables are damaged are among the datasets."""
        names = [dataset.name for dataset in self.datasets if dataset.state != "damaged"]
        if graph is not None and not graph.models:
            return self
        return replace(self, models=tuple(standing_models(home, graph, names)))


@dataclass(frozen=True, slots=True)
class StopView:
    """A home whose driver was asked to stop."""

    home: str
    driver: Holder | None
    """The driver that has stopped; None if none ran."""


def _until_batch(home: Home, name: str) -> Iterable[Commit]:
    for commit in commits(home.table(name)):
        yield commit
        if commit.is_batch:
            return
