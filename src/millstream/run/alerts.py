"""Alerts of a run: held to their answers, and handed to the deliverer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from millstream.alert.deliver import Deliverer
from millstream.errors import CooldownTimeError
from millstream.model.dataset import Alert
from millstream.plan.queries import event_time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from millstream.lake.lease import Lease
    from millstream.model.dataset import Source, Table
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
            self._deliverer.add(alert, clock_of(self._graph, alert))
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


def clock_of(graph: Graph, alert: Alert) -> str | None:
    """Name the column that a cooldown goes by: the one that was said, else the event time."""
    known = event_time_of(graph, alert.name)
    return alert.event_time or (known.column if known else None)


def hold_to_alert(graph: Graph, alert: Source | Table, frame: DataFrame) -> None:
    """Make sure that the answer of an alert has the time that its cooldown goes by.

    Raises:
        CooldownTimeError: It has not, or it is no time.
    """
    if not isinstance(alert, Alert) or (alert.cooldown is None and alert.event_time is None):
        return
    column = clock_of(graph, alert)
    found = _type_of(frame.schema, column) if column else None
    if not isinstance(found, TimestampType | TimestampNTZType):
        raise CooldownTimeError(
            alert.name,
            column=column,
            got=found.simpleString() if found else None,
            columns=frame.columns,
            at=alert.at,
        )


def _type_of(schema: DataType, path: str) -> DataType | None:
    for name in path.split("."):
        if not isinstance(schema, StructType) or name not in schema.names:
            return None
        schema = schema[name].dataType
    return schema
