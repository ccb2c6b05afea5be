"""Answers that are served, kept as tables: what a proof makes up is not for others to see."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.check.tables import stored_inputs
from millstream.model.dataset import Alert, Serve, Table
from millstream.model.graph import Graph
from millstream.serve.option import named

if TYPE_CHECKING:
    from millstream.model.dataset import Dataset


def without_sinks(graph: Graph) -> Graph:
    """Let tables of the home stand in for what is served; what has no key to be kept by goes.

    Of an alert, the outbox stays, and nobody is told.
    """
    kept = (_kept(graph, dataset) for dataset in graph.declared)
    return Graph(graph.app, tuple(dataset for dataset in kept if dataset is not None))


def _kept(graph: Graph, dataset: Dataset) -> Dataset | None:
    if isinstance(dataset, Alert):
        return replace(dataset, to=())
    return _as_table(graph, dataset) if isinstance(dataset, Serve) else dataset


def _as_table(graph: Graph, serve: Serve) -> Table | None:
    mode = serve.mode or "append"
    inputs = [graph.datasets[name] for name in stored_inputs(graph, serve.name)]
    if any(isinstance(i, Table) and i.mode != "append" for i in inputs):
        # What stores are told of changes adds up to the whole answer.
        mode = "complete"
    keys = (named(getattr(sink, "key", None) or ()) for sink in serve.to)
    key = next((key for key in keys if key), ()) if mode == "update" else ()
    if mode == "update" and not key:
        return None
    return Table(serve.name, serve.reads, serve.build, serve.at, mode=mode, key=key)
