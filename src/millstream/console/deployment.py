"""What a console shows: an app, its home, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.lake.home import Home
    from millstream.model.graph import Graph
    from millstream.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """An app as it is deployed."""

    name: str
    home: Home
    graph: Graph | None = None
    """What the app declares; None if only its home is known."""
    settings: Callable[[], Mapping[str, Setting]] | None = None
    app: str | None = None
    """The app as it is named on the command line."""
    profile: str | None = None

    def check_known(self, name: str) -> str:
        """Return a name that is a dataset's: no other gets near a path or a query.

        Raises:
            UNKNOWN_DATASET: Neither the app nor the home knows it.
        """
        known = {*(self.graph.datasets if self.graph else ()), *self.home.tables}
        if name not in known:
            raise fault(
                "UNKNOWN_DATASET", name=name, nearest=closest(name, known), known=listed(known)
            )
        return name
