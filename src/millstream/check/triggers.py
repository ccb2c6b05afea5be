"""Faults of triggers: what cannot run without batches, as far as it is known without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.check.tables import stored_inputs
from millstream.errors import fault
from millstream.model.connector import RowWise
from millstream.model.dataset import Serve, Source
from millstream.model.record import PLAIN
from millstream.model.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import MillstreamError
    from millstream.model.codec import Codec
    from millstream.model.dataset import Dataset, Table
    from millstream.model.graph import Graph

_CAN_BE_READ = {"realtime": "ms.Kafka", "continuous": "ms.Kafka or ms.Rate"}
_DECODED_BY_SPARK = ("json", "text", "rows")
_CAN_BE_WRITTEN = ("ms.Kafka", "ms.Console")


def unfit_triggers(graph: Graph) -> Iterator[MillstreamError]:
    """Datasets with a trigger without batches that are, read or write what needs batches."""
    if graph.cycle:
        return
    for dataset in graph.queried:
        trigger = _row_wise_trigger(graph, dataset)
        if trigger is None:
            continue
        if isinstance(dataset, Serve):
            yield from _unfit_serve(graph, dataset, trigger)
        elif not dataset.live:
            kind = type(dataset).__name__.lower()
            why = f"is a {kind}, which is written in batches"
            instead = "serve it with @app.serve(to=ms.Kafka(…))"
            if kind == "source":
                why, instead = "is landed, which is done in batches", "declare it with live=True"
            yield fault(
                "TRIGGER_TARGET",
                at=dataset.at,
                dataset=dataset.name,
                kind=kind,
                trigger=graph.trigger_of(dataset),
                why=why,
                instead=instead,
            )


def _row_wise_trigger(graph: Graph, dataset: Source | Table | Serve) -> Trigger | None:
    try:
        trigger = Trigger.parse(graph.trigger_of(dataset))
    except ValueError:
        return None
    return trigger if trigger.is_row_wise else None


def _unfit_serve(graph: Graph, serve: Serve, trigger: Trigger) -> Iterator[MillstreamError]:
    declared = graph.trigger_of(serve)
    for name in stored_inputs(graph, serve.name):
        if unfit := _unfit_input(graph.datasets[name], trigger):
            why, instead = unfit
            yield fault(
                "TRIGGER_INPUT",
                at=serve.at,
                serve=serve.name,
                trigger=declared,
                reads=name,
                why=why,
                instead=instead,
            )
    for sink in serve.to:
        if not (isinstance(sink, RowWise) and trigger.kind in sink.row_wise):
            kind = type(sink).__name__
            yield fault(
                "TRIGGER_SINK",
                at=serve.at,
                serve=serve.name,
                trigger=declared,
                sink=kind,
                can=" or ".join(_CAN_BE_WRITTEN),
            )
    if trigger.kind == "realtime" and serve.mode not in (None, "update"):
        yield fault(
            "TRIGGER_MODE", at=serve.at, serve=serve.name, trigger=declared, mode=str(serve.mode)
        )


def _unfit_input(dataset: Dataset, trigger: Trigger) -> tuple[str, str] | None:
    """Return why a dataset cannot be read without batches, and what can."""
    if not isinstance(dataset, Source):
        return "a table, whose rows come in batches", "read a live source"
    if not dataset.live:
        return "which is landed in batches", f"declare {dataset.name!r} with live=True"
    connector = dataset.connector
    if not (isinstance(connector, RowWise) and trigger.kind in connector.row_wise):
        why = f"which ms.{type(connector).__name__} gives in batches"
        return why, f"read it from {_CAN_BE_READ[trigger.kind]}"
    if (in_python := _decoded_in_python(connector.codec)) is not None:
        return in_python
    if trigger.kind == "continuous" and dataset.expect.rules:
        why = "whose rules reject rows that nothing would count"
        return why, "put the rules into the query, use trigger='realtime'"
    return None


def _decoded_in_python(codec: Codec) -> tuple[str, str] | None:
    """Return what Spark alone cannot decode, and what it can."""
    if codec.format not in _DECODED_BY_SPARK:
        return f"whose {codec.format} values are decoded in Python", "send them as JSON or text"
    if codec.record != PLAIN:
        return "whose fields become columns in Python", "name columns as the fields are named"
    return None
