"""Faults of served answers: their sinks, and what reads them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.check.tables import stored_inputs
from millstream.errors import MillstreamError, fault
from millstream.model.dataset import Serve, Table
from millstream.model.sink import NamedSink, ShownSink, SparkSink, StoreSink

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.errors import MillstreamError
    from millstream.model.dataset import Dataset
    from millstream.model.graph import Graph


def served_inputs(graph: Graph) -> Iterator[MillstreamError]:
    """Datasets that read what is served, not stored."""
    for dataset in graph.declared:
        for name in dict.fromkeys(dataset.reads):
            if isinstance(graph.datasets.get(name), Serve):
                yield fault("SERVED_INPUT", at=dataset.at, dataset=dataset.name, reads=name)


def served_changes(graph: Graph) -> Iterator[MillstreamError]:
    """Answers made from rows that change, served in a way that cannot say so."""
    if graph.cycle:
        return
    for serve in graph.serves:
        inputs = [graph.datasets[name] for name in stored_inputs(graph, serve.name)]
        for reads in inputs:
            if not isinstance(reads, Table) or not reads.is_changing:
                continue
            if unable := _unable_to_change(graph, serve, inputs):
                why, use = unable
                yield fault(
                    "SERVED_CHANGES",
                    at=serve.at,
                    serve=serve.name,
                    reads=reads.name,
                    reads_mode=reads.mode,
                    why=why,
                    use=use,
                )


def _unable_to_change(
    graph: Graph, serve: Serve, inputs: Sequence[Dataset]
) -> tuple[str, str] | None:
    """Return why changes cannot be served, and what to do."""
    sinks = graph.sinks_of(serve)
    if live := [i.name for i in inputs if i.live]:
        return f"and {live[0]!r}, which is live", f"land {live[0]!r}: leave live=True out"
    if all(isinstance(sink, SparkSink) for sink in sinks):
        return "to a sink of Spark's, which only adds", "serve it to a store"
    if serve.mode not in ("update", "complete"):
        use = "mode='update' with a key sends changes; mode='complete' replaces all rows"
        return "in a mode that only adds", use
    keys = {tuple(sink.key) for sink in sinks if isinstance(sink, StoreSink)}
    if serve.mode == "update" and len(keys) > 1:
        return "to stores with other keys each", "declare a serve for each key"
    return None


def sink_faults(graph: Graph) -> Iterator[MillstreamError]:
    """Whatever the sinks find wrong with their own settings."""
    for serve in graph.serves:
        for sink in graph.sinks_of(serve):
            if isinstance(sink, SparkSink):
                yield from sink.sink_faults(serve.name, serve.at)
            if isinstance(sink, StoreSink):
                yield from sink.faults(serve.name, serve.mode or "append", serve.at)


def same_sinks(graph: Graph) -> Iterator[MillstreamError]:
    """Answers served to two functions that would take each other's notes for their own."""
    for serve in graph.serves:
        names = Counter(sink.name for sink in serve.to if isinstance(sink, NamedSink))
        yield from (
            fault("SAME_SINKS", at=serve.at, serve=serve.name, name=name)
            for name, count in names.items()
            if count > 1
        )


def several_sinks(graph: Graph) -> Iterator[MillstreamError]:
    """Answers that Spark itself would have to write to several sinks."""
    for serve in graph.serves:
        sinks = graph.sinks_of(serve)
        by_spark = [sink for sink in sinks if isinstance(sink, SparkSink)]
        is_beside = len(by_spark) < len(sinks) and all(isinstance(s, ShownSink) for s in by_spark)
        if len(sinks) > 1 and by_spark and not is_beside:
            yield fault("SEVERAL_SINKS", at=serve.at, serve=serve.name, sinks=len(serve.to))
