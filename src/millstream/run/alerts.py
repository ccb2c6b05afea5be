"""Alerts of a run: handed to the deliverer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.alert.deliver import Deliverer
from millstream.build.checks import cooldown_column
from millstream.model.dataset import Alert

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.lake.lease import Lease
    from millstream.model.graph import Graph
    from millstream.observe import Event
    from millstream.plan import Query


class Alerts:
    """What a run has to tell: nothing, if no alert of it has a destination."""

    def __init__(self, graph: Graph, lease: Lease, tell: Callable[[Event], None]) -> None:
        self._graph, self._lease, self._tell = graph, lease, tell
        self._deliverer: Deliverer | None = None

    def open(self, queries: Sequence[Query]) -> None:
        """Shut earlier drivers out of the deliveries, and take on what is to be told."""
        alerts = [q.dataset for q in queries if isinstance(q.dataset, Alert) and q.dataset.to]
        if not alerts:
            return
        lease, app = self._lease, self._graph.app
        self._deliverer = Deliverer(app, lease.home, lease.epoch, hold=lease.hold, tell=self._tell)
        for alert in alerts:
            self._deliverer.add(alert, cooldown_column(self._graph, alert))
        self._deliverer.keep_to([alert.name for alert in self._graph.alerts])

    def start(self) -> None:
        """Deliver from now on."""
        if self._deliverer:
            self._deliverer.start()

    def drain(self) -> None:
        """Tell all there is."""
        if self._deliverer:
            self._deliverer.drain()

    def finish(self, keep_on: Callable[[], bool]) -> None:
        """Tell what is left, unless there is no time."""
        if self._deliverer and keep_on():
            self._deliverer.finish()

    def close(self) -> None:
        """Let deliveries that are under way finish, and let go."""
        if self._deliverer:
            self._deliverer.close()
