"""From graph to queries: one per landing, per table and per serve; views are inlined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.check.tables import stored_inputs
from millstream.model.dataset import EventTime, FunctionalStream, Model, Serve, Source, Table, View
from millstream.model.duration import parse_duration
from millstream.model.sink import SparkSink

if TYPE_CHECKING:
    from millstream.model.graph import Graph


Kind = Literal["landing", "stream", "recompute", "serve"]


@dataclass(frozen=True, slots=True)
class Query:
    """One thing that runs: a landing, a stream into a table or sink, or a `recompute`.

    That is a query over snapshots, without a checkpoint of Spark: it computes its whole answer
    anew, or the next batches of a functional stream.
    """

    name: str
    kind: Kind
    dataset: Source | Table | Serve
    after: tuple[str, ...]
    """Queries whose output this one reads."""

    @property
    def is_stream(self) -> bool:
        """Whether Spark runs it as a stream; else it reads snapshots."""
        return self.kind != "recompute"


def plan(graph: Graph, chosen: frozenset[str] | None = None) -> tuple[Query, ...]:
    """Turn a sound graph into queries, each after those it reads from.

    Args:
        graph: A graph without faults.
        chosen: Names to run; everything if None.
    """
    queries = []
    for dataset in graph.ordered:
        if isinstance(dataset, View) or dataset.live:
            continue
        if chosen is not None and dataset.name not in chosen:
            continue
        after = stored_inputs(graph, dataset.name)
        queries.append(Query(dataset.name, _kind(graph, dataset, after), dataset, after))
    return tuple(queries)


def plan_stored(graph: Graph) -> tuple[Query, ...]:
    """Turn a sound graph into the queries whose answers the home holds."""
    return tuple(query for query in plan(graph) if query.dataset.kind != "serve")


def plan_fenced(graph: Graph) -> tuple[Query, ...]:
    """Turn a sound graph into the queries that write each batch once: all but those of Spark's."""
    return tuple(query for query in plan(graph) if not _is_written_by_spark(graph, query.dataset))


def _is_written_by_spark(graph: Graph, dataset: Source | Table | Serve) -> bool:
    if not isinstance(dataset, Serve):
        return False
    return all(isinstance(sink, SparkSink) for sink in graph.sinks_of(dataset))


def _kind(graph: Graph, dataset: Source | Table | Serve, after: tuple[str, ...]) -> Kind:
    if isinstance(dataset, Source):
        return "landing"
    inputs = [graph.datasets[name] for name in after]
    if isinstance(dataset, FunctionalStream) or any(i.is_changing for i in inputs):
        return "recompute"
    return "serve" if isinstance(dataset, Serve) else "stream"


def event_time_of(graph: Graph, name: str) -> EventTime | None:
    """Return which column of a stored dataset is event time: its own, or its only input's.

    An answer that still has the event-time column of what it reads is read with the same watermark;
    with several inputs, none is assumed: the faster one would make rows of the slower one late.
    A model beside other inputs is taken to score their rows. The rows of a functional stream are of
    batches, and have no event time.
    """
    dataset = graph.datasets[name]
    if isinstance(dataset, FunctionalStream):
        return None
    if isinstance(dataset, Source):
        if dataset.event_time is None or dataset.watermark is None:
            return None
        return EventTime(dataset.event_time, parse_duration(dataset.watermark))
    stored = stored_inputs(graph, name)
    inputs = [n for n in stored if not isinstance(graph.datasets[n], Model)] or stored
    return event_time_of(graph, inputs[0]) if len(inputs) == 1 else None
