"""Sinks that are stores: how a driver opens one to write, and a reader for look-ups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from millstream.model.sink import StoreSink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.model.graph import Graph
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store, StoreReader


@runtime_checkable
class WritableSink(StoreSink, Protocol):
    """A store that a driver can open."""

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Connect one driver; create the table for the rows, or check the answer against it."""
        ...


@runtime_checkable
class ReadableSink(StoreSink, Protocol):
    """A store in which a row can be looked up by its key."""

    def reader(self, dataset: str) -> StoreReader:
        """Connect for look-ups."""
        ...


def readable_sinks(graph: Graph) -> Mapping[str, ReadableSink]:
    """Find the store that rows of each answer are looked up in: of several, the first that can."""
    found: dict[str, ReadableSink] = {}
    for serve in graph.serves:
        for sink in serve.to:
            if isinstance(sink, ReadableSink):
                found.setdefault(serve.name, sink)
    return found
