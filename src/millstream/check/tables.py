"""Faults of tables: keys, inputs, and modes that do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import MillstreamError, fault
from millstream.model.dataset import FunctionalStream, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import MillstreamError
    from millstream.model.graph import Graph


def no_inputs(graph: Graph) -> Iterator[MillstreamError]:
    """Tables and views that read nothing."""
    for dataset in graph.declared:
        if dataset.kind != "source" and not dataset.reads:
            yield fault("NO_INPUT", at=dataset.at, dataset=dataset.name)


def keys(graph: Graph) -> Iterator[MillstreamError]:
    """Update tables without a key, and keys that nothing uses."""
    for table in graph.tables:
        if table.mode == "update" and not table.key:
            yield fault("KEY_MISSING", at=table.at, table=table.name)
        is_unused = table.mode in ("append", "complete") and table.kind == "table"
        if is_unused and table.key:
            yield fault("KEY_UNUSED", at=table.at, table=table.name, mode=table.mode)


def stored_inputs(graph: Graph, name: str) -> tuple[str, ...]:
    """List the sources and tables a dataset reads, through the views between."""
    found: dict[str, None] = {}
    for reads in graph.datasets[name].reads:
        dataset = graph.datasets.get(reads)
        if isinstance(dataset, View):
            found |= dict.fromkeys(stored_inputs(graph, reads))
        elif dataset is not None:
            found[reads] = None
    return tuple(found)


def changing_inputs(graph: Graph) -> Iterator[MillstreamError]:
    """Tables that read rows which change, without being recomputed."""
    if graph.cycle:
        return
    for table in graph.tables:
        for name in stored_inputs(graph, table.name):
            reads = graph.datasets[name]
            is_recomputed = table.mode == "complete" and not isinstance(table, FunctionalStream)
            if not is_recomputed and isinstance(reads, Table) and reads.is_changing:
                yield fault(
                    "CHANGING_INPUT",
                    at=table.at,
                    table=table.name,
                    mode=table.mode,
                    reads=name,
                    reads_mode=reads.mode,
                )
