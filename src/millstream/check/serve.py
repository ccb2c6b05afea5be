"""Faults of served answers: their sinks, and who reads whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.check.tables import stored_inputs
from millstream.errors import ServedChangesError, ServedInputError, SeveralSinksError
from millstream.model.dataset import Serve, SparkSink, StoreSink, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import MillstreamError
    from millstream.model.graph import Graph


def served_inputs(graph: Graph) -> Iterator[ServedInputError]:
    """Datasets that read what is served, not stored."""
    for dataset in graph.declared:
        for name in dict.fromkeys(dataset.reads):
            if isinstance(graph.datasets.get(name), Serve):
                yield ServedInputError(dataset.name, reads=name, at=dataset.at)


def served_changes(graph: Graph) -> Iterator[ServedChangesError]:
    """Answers served from tables whose rows change."""
    if graph.cycle:
        return
    for serve in graph.serves:
        for name in stored_inputs(graph, serve.name):
            reads = graph.datasets[name]
            if isinstance(reads, Table) and reads.mode != "append":
                yield ServedChangesError(serve.name, reads=name, reads_mode=reads.mode, at=serve.at)


def sink_faults(graph: Graph) -> Iterator[MillstreamError]:
    """Whatever the sinks find wrong with their own settings."""
    for serve in graph.serves:
        for sink in serve.to:
            if isinstance(sink, SparkSink):
                yield from sink.sink_faults(serve.name, serve.at)
            if isinstance(sink, StoreSink):
                yield from sink.faults(serve.name, serve.mode or "append", serve.at)


def several_sinks(graph: Graph) -> Iterator[SeveralSinksError]:
    """Answers that Spark itself would have to write to several sinks."""
    for serve in graph.serves:
        if len(serve.to) > 1 and any(isinstance(sink, SparkSink) for sink in serve.to):
            yield SeveralSinksError(serve.name, sinks=len(serve.to), at=serve.at)
