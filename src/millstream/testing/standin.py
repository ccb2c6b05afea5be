"""Answers that are served, kept as tables: what a proof makes up is not for others to see."""

from __future__ import annotations

from millstream.check.tables import stored_inputs
from millstream.model.dataset import Serve, Table
from millstream.model.graph import Graph
from millstream.sinks.option import named


def without_sinks(graph: Graph) -> Graph:
    """Let tables of the home stand in for what is served; what has no key to be kept by goes."""
    kept = (_as_table(graph, d) if isinstance(d, Serve) else d for d in graph.declared)
    return Graph(graph.app, tuple(dataset for dataset in kept if dataset is not None))


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
