"""Tables in place of sinks, so that a proof sends nothing to the outside world."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.check.tables import stored_inputs
from millstream.model.dataset import Alert, Serve, Table
from millstream.model.graph import Graph
from millstream.model.query_options import QueryOptions
from millstream.serve.option import as_names

if TYPE_CHECKING:
    from millstream.model.dataset import Dataset


def without_sinks(graph: Graph) -> Graph:
    """Replace serves by tables of the home; a serve without a key is left out.

    An alert keeps its outbox, and sends nothing.
    """
    kept = (_kept(graph, dataset) for dataset in graph.declared)
    whole = tuple(dataset for dataset in kept if dataset is not None)
    return Graph(graph.app, whole, QueryOptions(keep_versions=graph.options.keep_versions))


def _kept(graph: Graph, dataset: Dataset) -> Dataset | None:
    if isinstance(dataset, Alert):
        return replace(dataset, to=())
    return _as_table(graph, dataset) if isinstance(dataset, Serve) else dataset


def _as_table(graph: Graph, serve: Serve) -> Table | None:
    mode = serve.mode or "append"
    inputs = [graph.datasets[name] for name in stored_inputs(graph, serve.name)]
    if any(i.is_changing for i in inputs):
        # The changes that a store receives add up to the whole answer.
        mode = "complete"
    keys = (as_names(getattr(sink, "key", None) or ()) for sink in serve.to)
    key = next((key for key in keys if key), ()) if mode == "update" else ()
    if mode == "update" and not key:
        return None
    return Table(serve.name, serve.reads, serve.build, serve.at, mode=mode, key=key)
