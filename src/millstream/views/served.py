"""What can be looked up, by which key, and where it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import MillstreamError
from millstream.serve.sink import readable_sinks
from millstream.views.json_text import FaultView

if TYPE_CHECKING:
    from millstream.model.graph import Graph
    from millstream.serve.lookup import Lookups


@dataclass(frozen=True, slots=True)
class KeyView:
    """A column of a key."""

    name: str
    type: str | None = None
    """In Spark's word; None while the store does not report it."""


@dataclass(frozen=True, slots=True)
class ServedView:
    """A served answer, and the key by which its rows are looked up."""

    dataset: str
    key: tuple[KeyView, ...]
    fault: FaultView | None = None
    """Why nothing can be looked up now."""

    @staticmethod
    def of(name: str, graph: Graph, lookups: Lookups) -> ServedView:
        """Ask the store of an answer for the types of its key."""
        try:
            columns = lookups.of(graph, name).key()
        except MillstreamError as error:
            key = tuple(KeyView(column) for column in readable_sinks(graph)[name].key)
            return ServedView(name, key, FaultView.of(error))
        return ServedView(name, tuple(KeyView(c.name, c.type) for c in columns))


@dataclass(frozen=True, slots=True)
class ConsoleView:
    """Where a console answers."""

    app: str
    url: str
    token: str | None
    """None if it comes from the environment, which the caller knows."""
    look_token: str
    """Of the link that may be shared: with it, everything is shown and nothing changed."""

    @property
    def link(self) -> str:
        """What to open; without the token if it comes from the environment."""
        return self.url + (f"#{self.token}" if self.token else "")
