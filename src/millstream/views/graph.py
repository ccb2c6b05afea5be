"""An app as a graph: its datasets and what each reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import Location
from millstream.model.dataset import Alert, Serve, Source, Table, View
from millstream.views.report import AppView

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from millstream.model.dataset import Dataset
    from millstream.model.graph import Graph


@dataclass(frozen=True, slots=True)
class NodeView:
    """A dataset among others."""

    name: str
    kind: str
    connector: str | None
    """Where the rows of a source come from, or those of a served answer or an alert go to."""
    live: bool
    mode: str | None
    key: tuple[str, ...]
    trigger: str | None
    guarantee: str | None
    """How often the rows of a served answer or an alert arrive."""
    reads: tuple[str, ...]
    read_by: tuple[str, ...]
    file: str
    line: int

    @staticmethod
    def of(graph: Graph, dataset: Dataset, read_by: tuple[str, ...]) -> NodeView:
        """Show a dataset of a graph."""
        source = dataset if isinstance(dataset, Source) else None
        table = dataset if isinstance(dataset, Table) else None
        serve = dataset if isinstance(dataset, Serve) else None
        leaving = dataset if isinstance(dataset, Serve | Alert) else None
        ends = (source.connector,) if source else leaving.to if leaving else ()
        return NodeView(
            dataset.name,
            dataset.kind,
            connector=", ".join(type(end).__name__.lower() for end in ends) or None,
            live=dataset.live,
            mode=serve.mode if serve else table.mode if table and not leaving else None,
            key=table.key if table else (),
            trigger=None if isinstance(dataset, View) else graph.trigger_of(dataset),
            guarantee=graph.guarantee_of(leaving) if leaving else None,
            reads=dataset.reads,
            read_by=read_by,
            file=dataset.at.file,
            line=dataset.at.line,
        )

    @property
    def at(self) -> Location:
        """Where it is declared."""
        return Location(self.file, self.line)

    def __str__(self) -> str:
        key = f"by {', '.join(self.key)}" if self.key else ""
        mode = f"{self.mode or ''} {key}".strip()
        trigger = self.trigger if self.kind == "serve" and self.trigger != "default" else None
        live = "live" if self.live else None
        words = (self.kind, self.connector, live, mode, trigger, self.guarantee)
        return " · ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class GraphView:
    """An app and its datasets, each after those it reads, unless they read in a circle."""

    app: AppView
    datasets: tuple[NodeView, ...]

    @staticmethod
    def of(graph: Graph, chosen: Container[str] | None = None) -> GraphView:
        """Show a graph, or the datasets of it that were chosen."""
        readers = graph.readers
        ordered = tuple(graph.datasets.values()) if graph.cycle else graph.ordered
        shown = (d for d in ordered if chosen is None or d.name in chosen)
        nodes = tuple(NodeView.of(graph, d, readers[d.name]) for d in shown)
        return GraphView(AppView.of(graph), nodes)

    @property
    def edges(self) -> Iterator[tuple[str, str]]:
        """What is read by what, among the datasets that are shown."""
        names = {node.name for node in self.datasets}
        for node in self.datasets:
            for read in dict.fromkeys(node.reads):
                if read in names:
                    yield read, node.name
