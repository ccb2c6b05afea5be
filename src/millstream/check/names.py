"""Faults of names: of datasets, and of what they read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError, closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.model.graph import Graph

_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*_?")


def is_name(text: str) -> bool:
    """Return whether a text can be a table, a folder and a SQL name.

    >>> is_name("per_minute"), is_name("per__minute"), is_name("../x")
    (True, False, False)
    """
    return len(text) <= 63 and _NAME.fullmatch(text) is not None


def refused_names(graph: Graph) -> Iterator[MillstreamError]:
    """Names that cannot be a table, a folder and a SQL name."""
    if not is_name(graph.app):
        yield fault("NAME_REFUSED", name=graph.app)
    for dataset in graph.declared:
        if not is_name(dataset.name):
            yield fault("NAME_REFUSED", at=dataset.at, name=dataset.name)


def duplicate_names(graph: Graph) -> Iterator[MillstreamError]:
    """Names declared more than once."""
    first = graph.datasets
    for dataset in graph.declared:
        if first[dataset.name] is not dataset:
            yield fault(
                "DUPLICATE_NAME",
                at=dataset.at,
                name=dataset.name,
                first=first[dataset.name].at.of("name"),
            )


def unknown_inputs(graph: Graph) -> Iterator[MillstreamError]:
    """Inputs that nothing declares."""
    names = graph.datasets
    for dataset in graph.declared:
        for name in dataset.reads:
            if name not in names:
                yield fault(
                    "UNKNOWN_INPUT",
                    at=dataset.at,
                    dataset=dataset.name,
                    name=name,
                    nearest=closest(name, names),
                    declared=listed(names),
                )


def cycles(graph: Graph) -> Iterator[MillstreamError]:
    """Datasets that read each other in a circle."""
    if names := graph.cycle:
        at = graph.datasets[names[0]].at.of("from", names[1])
        yield fault("CYCLE", at=at, names=" reads ".join(repr(n) for n in names))
