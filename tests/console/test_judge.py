"""An open console judges the objectives of an app whose driver is dead."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.graphs import source

from millstream.console import judge
from millstream.console.deployment import Deployment
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.model.graph import Graph
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, RunRecord

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PATIENCE_S = 30


def test_a_console_reports_what_a_dead_driver_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "_EVERY_S", 0.05)
    home, ago = Home.at(tmp_path), datetime.now(UTC) - timedelta(minutes=10)
    home.prepare("shop", sources=["orders"])
    with Lease.acquire(home) as lease, HistoryWriter(home.history) as writer:
        run = RunRecord(lease.epoch, ago, 42, "here", "0.1", "ab12")
        writer.write([run, BatchRecord("orders", 0, ago, input=1, output=1)])
    graph = Graph("shop", (source("orders", freshness="5 minutes"),))

    with (
        judge.judging(Deployment(name="shop", home=home, graph=graph)),
        History.read_only(home.history) as history,
    ):
        until = time.monotonic() + PATIENCE_S
        while not (found := history.events()) and time.monotonic() < until:
            time.sleep(0.02)

    assert [(event.kind, event.dataset) for event in found] == [("stale", "orders")]
    assert not [t for t in threading.enumerate() if t.name.startswith("judge")]
