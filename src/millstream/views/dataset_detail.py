"""One dataset in full: what is declared of it, what is stored of it, and a few of its rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed
from millstream.lake.log import commits
from millstream.model.data_type import type_ddl
from millstream.model.dataset import Serve, Source, Table, View
from millstream.model.schema import Schema, json_ddl
from millstream.views.graph import NodeView
from millstream.views.json_text import AnswerView
from millstream.views.status import StandingView

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from millstream.lake.home import Home
    from millstream.lake.log import Commit
    from millstream.model.dataset import Dataset
    from millstream.model.graph import Graph

_VERSIONS = 5


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A column."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class VersionView:
    """A commit of a table."""

    version: int
    at: datetime
    operation: str
    batch: int | None
    """None if it wrote no batch: a driver took it over, a source was idle, or another wrote."""
    rows: int | None
    """Rows that the batch wrote."""

    @staticmethod
    def of(commit: Commit) -> VersionView:
        """Show a commit."""
        facts = commit.facts if commit.is_batch else None
        batch, rows = (facts.batch, facts.rows) if facts else (None, None)
        return VersionView(commit.version, commit.at, commit.operation, batch, rows)


@dataclass(frozen=True, slots=True)
class DeclaredView:
    """What an app says of a dataset, besides its place among others."""

    trigger: str | None
    event_time: str | None
    event_time_from: str | None
    """The expression that it is computed with, if it is."""
    watermark: str | None
    idle: str | None
    """How long without rows until the clock moves the watermark."""
    partition_by: tuple[str, ...]
    rules: Mapping[str, str]
    on_violation: str | None
    """What happens to a row that breaks a rule; a source rejects it."""
    evolve: bool

    @staticmethod
    def of(dataset: Dataset) -> DeclaredView | None:
        """Show what is declared; nothing more is said of a view."""
        if isinstance(dataset, View):
            return None
        source = dataset if isinstance(dataset, Source) else None
        table = dataset if isinstance(dataset, Table) else None
        return DeclaredView(
            dataset.options.trigger,
            event_time=source.event_time if source else None,
            event_time_from=source.event_time_from if source else None,
            watermark=source.watermark if source else None,
            idle=source.idle if source else None,
            partition_by=table.partition_by if table else (),
            rules={} if isinstance(dataset, Serve) else dataset.expect.rules,
            on_violation=table.expect.on_violation if table else None,
            evolve=not isinstance(dataset, Serve) and dataset.evolve,
        )


@dataclass(frozen=True, slots=True)
class ShownView:
    """One dataset in full."""

    name: str
    node: NodeView | None
    """Its place in the app; None if only the home knows it."""
    declared: DeclaredView | None
    standing: StandingView | None
    """What is stored; None of a view."""
    schema: tuple[ColumnView, ...]
    """Of a table that never ran it is not known yet."""
    versions: tuple[VersionView, ...]
    sample: AnswerView | None

    @staticmethod
    def of(home: Home, graph: Graph | None, name: str, *, rows: int) -> ShownView:
        """Show a dataset of an app, or a table that only its home knows.

        Raises:
            UNKNOWN_DATASET: Neither knows it.
            HOME_DAMAGED: The table cannot be read.
        """
        datasets = graph.datasets if graph else {}
        if name not in datasets and name not in home.tables:
            known = {*datasets, *home.tables}
            raise fault(
                "UNKNOWN_DATASET", name=name, nearest=closest(name, known), known=listed(known)
            )
        dataset = datasets.get(name)
        node = NodeView.of(graph, dataset, graph.readers[name]) if graph and dataset else None
        declared = DeclaredView.of(dataset) if dataset else None
        if isinstance(dataset, View):
            return ShownView(name, node, declared, None, (), (), None)
        standing = StandingView.of(home, name, dataset)
        latest = itertools.islice(commits(home.table(name)), _VERSIONS)
        versions = tuple(VersionView.of(commit) for commit in latest)
        if not versions:
            return ShownView(name, node, declared, standing, _declared_columns(dataset), (), None)
        from millstream.lake.sample import read_sample

        fields, names, found = read_sample(home, name, rows)
        schema = tuple(ColumnView(f["name"], json_ddl(f["type"]), f["nullable"]) for f in fields)
        sample = AnswerView(names, found) if rows else None
        return ShownView(name, node, declared, standing, schema, versions, sample)


def _declared_columns(dataset: Dataset | None) -> tuple[ColumnView, ...]:
    if not isinstance(dataset, Source):
        return ()
    fields = Schema.parse(dataset.connector.schema).fields
    return tuple(ColumnView(f.name, type_ddl(f.type), f.nullable) for f in fields)
