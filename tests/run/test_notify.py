"""Objectives that are not met are delivered as alerts are, also if an app declares none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.apps import wait_for
from tests.graphs import source

import millstream as ms
from millstream.alert.deliveries import Deliveries
from millstream.app import App
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.model.graph import Graph
from millstream.observe import Event
from millstream.observe.record import EventRecord
from millstream.run.alerts import Alerts
from millstream.testing.hook import Hook

if TYPE_CHECKING:
    from pathlib import Path

STALE = EventRecord(datetime.now(UTC), "stale", "orders", "long ago", 1, "freshness")


def test_what_the_driver_finds_is_sent_and_is_still_known_to_the_next_driver(
    tmp_path: Path,
) -> None:
    home, events = Home.at(tmp_path), list[Event]()
    home.prepare("shop", sources=["orders"])
    with Hook() as hook:
        app = Graph("shop", (source("orders"),), notify=(ms.Webhook(hook.address),))
        with Lease.acquire(home) as lease:
            alerts = Alerts.open(app, lease, events.append, ())
            alerts.start()
            assert alerts.notify([STALE])
            wait_for(lambda: hook.received)
            alerts.close()
        with Lease.acquire(home) as lease:
            Alerts.open(app, lease, events.append, ()).close()

    [request] = hook.received
    assert request.body["key"] == {"dataset": "orders", "objective": "freshness"}
    assert request.body["row"]["state"] == "stale"
    deliveries = Deliveries(home.alerts)
    assert deliveries.counts()["delivered"] == 1
    deliveries.close()
    assert events == []


def test_an_app_without_destinations_has_nothing_to_deliver(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare("shop", sources=[])
    with Lease.acquire(home) as lease:
        alerts = Alerts.open(Graph("shop", (source("orders"),)), lease, lambda _: None, ())
        assert alerts.notify([STALE])
        alerts.close()

    assert not home.alerts.exists()


def test_functions_and_destinations_of_an_app_are_part_of_its_graph() -> None:
    app = App("shop", notify=ms.Log("objectives.jsonl"))

    @app.on("stale", "behind")
    def note(event: object) -> None: ...

    [reaction] = app.graph.reactions
    assert (reaction.kinds, reaction.act) == (("stale", "behind"), note)
    assert app.graph.notify == (ms.Log("objectives.jsonl"),)
    assert [fault.code for fault in app.faults] == ["EMPTY_APP"]


def test_a_destination_that_is_none_is_a_fault() -> None:
    app = App("shop", notify="ops@example.org")  # type: ignore[arg-type]

    assert "NOT_A_DESTINATION" in [fault.code for fault in app.faults]
