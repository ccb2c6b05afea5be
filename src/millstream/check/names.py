"""Faults of names: what is called what, and who reads whom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.errors import CycleError, DuplicateNameError, NameRefusedError, UnknownInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.model.graph import Graph

_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*_?")


def is_name(text: str) -> bool:
    """Tell whether a text can be a table, a folder and a SQL name.

    >>> is_name("per_minute"), is_name("per__minute"), is_name("../x")
    (True, False, False)
    """
    return len(text) <= 63 and _NAME.fullmatch(text) is not None


def refused_names(graph: Graph) -> Iterator[NameRefusedError]:
    """Names that cannot be a table, a folder and a SQL name."""
    if not is_name(graph.app):
        yield NameRefusedError(graph.app)
    for dataset in graph.declared:
        if not is_name(dataset.name):
            yield NameRefusedError(dataset.name, at=dataset.at)


def duplicate_names(graph: Graph) -> Iterator[DuplicateNameError]:
    """Names declared more than once."""
    first = graph.datasets
    for dataset in graph.declared:
        if first[dataset.name] is not dataset:
            yield DuplicateNameError(dataset.name, first=first[dataset.name].at, at=dataset.at)


def unknown_inputs(graph: Graph) -> Iterator[UnknownInputError]:
    """Inputs that nothing declares."""
    names = graph.datasets
    for dataset in graph.declared:
        for name in dataset.reads:
            if name not in names:
                yield UnknownInputError(
                    name, dataset=dataset.name, declared=tuple(names), at=dataset.at
                )


def cycles(graph: Graph) -> Iterator[CycleError]:
    """Datasets that read each other in a circle."""
    if names := graph.cycle:
        yield CycleError(names, at=graph.datasets[names[0]].at)
