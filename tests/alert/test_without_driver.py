"""If the driver is dead, a command judges the objectives and sends what has changed."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.graphs import source

import millstream as ms
from millstream.alert.deliveries import Deliveries, Silence
from millstream.alert.objectives import OBJECTIVES
from millstream.alert.without_driver import judge_without_driver
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.model.graph import Graph
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, RunRecord
from millstream.testing.hook import Hook, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime.now(UTC)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as hook:
        yield hook


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give a home whose driver died after a batch, ten minutes ago."""
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=["orders"])
    ago = NOW - timedelta(minutes=10)
    with Lease.acquire(home) as lease, HistoryWriter(home.history) as writer:
        run = RunRecord(lease.epoch, ago, 42, "here", "0.1", "ab12")
        writer.write([run, BatchRecord("orders", 0, ago, input=1, output=1)])
    return home


def app(hook: Hook) -> Graph:
    orders = source("orders", freshness="5 minutes")
    return Graph("shop", (orders,), notify=(ms.Webhook(hook.address),))


def judge(graph: Graph, home: Home, minutes: float = 0) -> list[str]:
    at = NOW + timedelta(minutes=minutes)
    return [event.kind for event in judge_without_driver(graph, home, now=at)]


def batch(home: Home, minutes: float) -> None:
    with HistoryWriter(home.history) as writer:
        at = NOW + timedelta(minutes=minutes)
        writer.write([BatchRecord("orders", 1, at, input=1, output=1)])


def test_an_objective_that_is_not_met_is_sent_once_and_its_recovery_too(
    home: Home, hook: Hook
) -> None:
    assert judge(app(hook), home) == ["stale"]
    assert judge(app(hook), home, 5) == []
    batch(home, 6)
    assert judge(app(hook), home, 7) == ["recovered"]
    assert judge(app(hook), home, 8) == []

    rows = [request.body["row"] for request in hook.received]
    assert [(row["dataset"], row["objective"], row["state"]) for row in rows] == [
        ("orders", "freshness", "stale"),
        ("orders", "freshness", "recovered"),
    ]
    assert rows[0]["detail"].startswith("its last batch was 10 minutes ago")
    kinds = [event.kind for event in History.read_only(home.history).events()]
    assert kinds == ["recovered", "stale"]


def test_what_a_destination_refuses_is_sent_by_the_next_command(home: Home, hook: Hook) -> None:
    hook.replies.append(Reply(503, {"Retry-After": "600"}))
    judge(app(hook), home)
    deliveries = Deliveries(home.alerts)
    assert deliveries.counts(OBJECTIVES)["pending"] == 1
    assert deliveries.retry() == 1
    deliveries.close()

    assert judge(app(hook), home, 1) == []

    assert len(hook.received) == 2
    assert len(hook.keys) == 1


def test_a_silence_holds_for_objectives_too(home: Home, hook: Hook) -> None:
    deliveries = Deliveries(home.alerts)
    deliveries.silence(Silence("", {"dataset": "orders"}, time.time() + 60))
    deliveries.close()

    assert judge(app(hook), home) == ["stale"]

    assert hook.received == []


def test_while_a_driver_runs_it_alone_judges(home: Home, hook: Hook) -> None:
    with Lease.acquire(home):
        assert judge(app(hook), home) == []

    assert hook.received == []


def test_a_driver_that_starts_meanwhile_is_not_disturbed(home: Home, hook: Hook) -> None:
    with Lease.acquire(home) as lease:
        driver = Deliveries(home.alerts, lease.epoch)
    # Its lock is gone, as on a file system without locks; its claim is not.
    assert judge(app(hook), home) == ["stale"]

    driver.check_fence()
    driver.close()
    assert hook.received == []


def test_an_app_that_never_ran_has_nothing_to_judge(tmp_path: Path, hook: Hook) -> None:
    assert judge(app(hook), Home.at(tmp_path)) == []
