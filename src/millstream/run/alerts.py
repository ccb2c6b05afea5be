"""The alerts of a run: what opens, starts and closes their delivery."""

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
    from millstream.observe.record import EventRecord
    from millstream.plan import Query


class Alerts:
    """The delivery of the alerts of a run; does nothing if no alert has a destination."""

    def __init__(self, deliverer: Deliverer | None) -> None:
        self._deliverer = deliverer

    @staticmethod
    def open(
        graph: Graph, lease: Lease, on_event: Callable[[Event], None], queries: Sequence[Query]
    ) -> Alerts:
        """Fence off earlier drivers, and load the deliveries that are due."""
        alerts = [q.dataset for q in queries if isinstance(q.dataset, Alert) and q.dataset.to]
        if not alerts and not graph.notify:
            return Alerts(None)
        deliverer = Deliverer(graph.app, lease.home, lease.epoch, hold=lease.hold, report=on_event)
        for alert in alerts:
            deliverer.add(alert, cooldown_column(graph, alert))
        deliverer.add_objectives(graph.notify)
        deliverer.drop_all_but([alert.name for alert in graph.alerts])
        return Alerts(deliverer)

    def notify(self, records: Sequence[EventRecord]) -> bool:
        """Report to the destinations of the app which objectives are not met, or met again.

        Returns:
            Whether they are recorded for delivery.
        """
        return self._deliverer is None or self._deliverer.enter_objectives(records)

    def start(self) -> None:
        """Deliver from now on."""
        if self._deliverer:
            self._deliverer.start()

    def drain(self) -> None:
        """Deliver all that is due."""
        if self._deliverer:
            self._deliverer.drain()

    def finish(self, keep_on: Callable[[], bool]) -> None:
        """Deliver what is left, unless the run is asked to stop."""
        if self._deliverer and keep_on():
            self._deliverer.finish()

    def close(self) -> None:
        """Let deliveries that are under way finish, then close."""
        if self._deliverer:
            self._deliverer.close()
