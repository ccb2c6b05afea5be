"""Judges the objectives of an app whose driver is dead, and reports what has changed."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from millstream.alert.deliver import Deliverer
from millstream.errors import OvertakenError, fault
from millstream.lake.lease import holder_of
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.objective_watch import ObjectiveWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.lake.home import Home
    from millstream.model.graph import Graph
    from millstream.observe import Event
    from millstream.observe.record import EventRecord

_SENT_WITHIN_S = 10.0


def judge_without_driver(
    graph: Graph,
    home: Home,
    report: Callable[[Event], None] = lambda _: None,
    now: datetime | None = None,
) -> Sequence[EventRecord]:
    """Judge objectives in place of a driver; do nothing if there is one, or never was.

    What has changed is sent to the destinations of the app, then recorded: if this process dies
    in between, it is sent again.
    """
    with History.read_only(home.history) as history:
        run = next(iter(history.runs(most=1)), None)
        if run is None or holder_of(home) is not None:
            return ()
        watch = ObjectiveWatch(graph, history, run.id, met_for=timedelta())
        changes = list(watch.look(now or datetime.now(UTC)))
        # The next driver that starts has a later epoch: it fences this process off.
        with suppress(OvertakenError):
            if graph.notify:
                _send(graph, home, run.id, changes, report)
            with HistoryWriter(home.history, report) as writer:
                writer.write(changes)
        return changes


def _send(
    graph: Graph,
    home: Home,
    epoch: int,
    changes: Sequence[EventRecord],
    report: Callable[[Event], None],
) -> None:
    def hold() -> None:
        if holder := holder_of(home):
            raise fault("OVERTAKEN", theirs=holder.pid, mine=epoch, table=str(home.path))

    deliverer = Deliverer(graph.app, home, epoch, hold=hold, report=report)
    try:
        deliverer.add_objectives(graph.notify)
        deliverer.enter_objectives(changes)
        deliverer.drain(within_s=_SENT_WITHIN_S, at_most_s=_SENT_WITHIN_S)
    finally:
        deliverer.close()
