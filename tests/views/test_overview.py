"""The overview judges an app by the files of its home, whether a driver runs or not."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.graphs import graph, source, table, view

from millstream.lake.failed_queries import Trouble, record_troubles
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, EventRecord, RunRecord
from millstream.views.history import SeriesView
from millstream.views.json_text import to_json
from millstream.views.overview import OverviewView

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.model.graph import Graph

NOW = datetime.now(UTC).replace(microsecond=0)
SHOP = graph(source("orders"), view("right", "orders"), table("clean", "right"))


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def batch(dataset: str, number: int, at: datetime, **more: Any) -> BatchRecord:
    facts = {"input": 10, "output": 10, "duration_ms": 100, "run": 1}
    return BatchRecord(dataset, number, at, **{**facts, **more})


def run(*, ended_at: datetime | None = None) -> RunRecord:
    outcome = "stopped" if ended_at else ""
    return RunRecord(1, ago(600), 42, "here", "0.1", "ab12", ended_at=ended_at, outcome=outcome)


def orders(last_total: int = 100) -> list[BatchRecord]:
    """Give ten batches of ten rows, one each ten seconds, the last one now."""
    return [
        batch("orders", n, ago(90 - 10 * n), total=last_total - 10 * (9 - n)) for n in range(10)
    ]


def overview(
    home: Path, *records: BatchRecord | EventRecord | RunRecord, of: Graph = SHOP, runs: bool = True
) -> OverviewView:
    place = Home.at(home)
    place.prepare("shop", sources=["orders"])
    with HistoryWriter(place.history) as writer:
        assert writer.write(records)
    with Lease.acquire(place) if runs else nullcontext():
        return OverviewView.of(place, of, History.read_only(place.history), now=NOW)


def health(view: OverviewView) -> dict[str, str]:
    return {dataset.name: dataset.health.state for dataset in view.datasets}


def test_an_app_that_is_well_is_so_in_one_sentence(tmp_path: Path) -> None:
    clean = batch("clean", 0, ago(1), total=100, read={"orders": 100})

    found = overview(tmp_path, run(), *orders(), clean)

    assert (found.state, found.sentence) == ("ok", "all 2 datasets are well")
    landed, cleaned = found.datasets
    assert landed.input_rate == pytest.approx(1, rel=0.4)
    assert (cleaned.reads, cleaned.behind_rows, cleaned.fresh_s) == (("orders",), 0, 1)
    assert sum(landed.recent_input) == 90
    assert to_json(found)


def test_what_a_dataset_has_not_read_is_behind_with_its_age(tmp_path: Path) -> None:
    clean = batch("clean", 0, ago(95), total=0, read={"orders": 10})

    found = overview(tmp_path, run(), *orders(), clean)

    cleaned = found.datasets[1]
    assert (cleaned.behind_rows, cleaned.behind_s) == (90, 80)
    assert cleaned.health.state == "behind"
    assert "90 rows wait for it, the oldest for 1 minute" in cleaned.health.why


def test_what_is_behind_says_how_much_work_is_left(tmp_path: Path) -> None:
    # Ten rows a second are read; the rows of the answer are fewer.
    read = [
        batch("clean", n, ago(10 - n), read={"orders": 10 * n + 10}, input=1) for n in range(10)
    ]

    found = overview(tmp_path, run(), *orders(5_000), *read)

    assert "4,900 rows wait for it" in (why := found.datasets[1].health.why or "")
    assert why.endswith("; 8 minutes of work at this rate")


@pytest.mark.parametrize(
    ("objective", "state", "why"),
    [
        ({"freshness": "30 seconds"}, "stale", "its last batch was 50 seconds ago"),
        ({"behind": "20 rows"}, "behind", "it has 40 rows to read"),
        ({"failed_rows": "9 %"}, "failing", "10.00% of its rows failed"),
        ({"freshness": "1 minute", "behind": "40 rows", "failed_rows": "10 %"}, "ok", ""),
    ],
)
def test_an_objective_that_is_not_met_shows(
    tmp_path: Path, objective: dict[str, str], state: str, why: str
) -> None:
    app = graph(source("orders"), table("clean", "orders", **objective))
    failed = {"written": 9, "quarantined": 1}
    clean = batch("clean", 0, ago(50), counts=failed, total=60, read={"orders": 60})

    found = overview(tmp_path, run(), *orders(), clean, of=app)

    assert found.datasets[1].health.state == state
    assert found.datasets[1].health.why.startswith(why)


def test_a_stopped_app_does_not_run_and_keeps_its_numbers(tmp_path: Path) -> None:
    found = overview(tmp_path, run(ended_at=ago(0)), *orders(), runs=False)

    assert found.driver is None
    assert health(found) == {"orders": "not running", "clean": "not running"}
    assert found.sentence == "nothing runs since 0 seconds: its driver has stopped"
    assert found.datasets[0].input_rate is None
    assert sum(found.datasets[0].recent_input) == 90


def test_an_app_that_has_processed_all_and_ended_is_well(tmp_path: Path) -> None:
    finished = replace(run(ended_at=ago(0)), outcome="finished")

    found = overview(tmp_path, finished, *orders(), runs=False)

    assert (found.driver, found.state) == (None, "ok")


def test_a_dead_driver_is_told_from_a_stopped_one(tmp_path: Path) -> None:
    found = overview(tmp_path, run(), *orders(), runs=False)

    assert found.datasets[0].health.why == "its driver, pid 42 on here, died"
    assert found.datasets[0].health.since == NOW


def test_a_failure_shows_with_its_fault_and_what_is_stale_because_of_it(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare("shop", sources=["orders"])
    failed = Trouble("failed", "UDF_RAISED", "'orders': it raised", "look at it", "app.py", 3)
    stale = Trouble("stale", "QUERY_STOPPED", "a dataset that it reads has failed", "status")
    record_troubles(home, ["orders", "clean"], {"orders": failed, "clean": stale})
    events = [
        EventRecord(ago(400), "query_failed", "orders"),
        EventRecord(ago(300), "run_started"),
        EventRecord(ago(200), "query_failed", "orders"),
        EventRecord(ago(200), "stale", "clean"),
    ]

    found = overview(tmp_path, run(), *orders(), *events)

    assert health(found) == {"orders": "failing", "clean": "stale"}
    assert found.datasets[0].health.since == ago(200)
    assert found.datasets[0].health.fault is not None
    assert found.datasets[0].health.fault.line == 3
    assert found.sentence == (
        "orders is failing since 3 minutes: 'orders': it raised; 1 more has a problem"
    )


def test_a_home_without_its_app_shows_what_it_has(tmp_path: Path) -> None:
    place = Home.at(tmp_path)
    place.prepare("shop", sources=["orders"])
    with HistoryWriter(place.history) as writer:
        writer.write([run(), *orders()])

    found = OverviewView.of(place, None, History.read_only(place.history), now=NOW)

    assert [(d.name, d.kind) for d in found.datasets] == [("orders", "source")]
    assert found.app == "shop"


def test_a_home_without_history_shows_what_is_declared(tmp_path: Path) -> None:
    place = Home.at(tmp_path)

    found = OverviewView.of(place, SHOP, History.read_only(place.history), now=NOW)

    assert {d.health.why for d in found.datasets} == {"it has never run"}


def test_a_series_has_rates_between_batches_and_what_happened(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with HistoryWriter(path) as writer:
        writer.write([*orders(), EventRecord(ago(5), "restarting", "orders")])

    found = SeriesView.of(History.read_only(path), "orders", until=NOW)

    assert [p.input_rate for p in found.points] == [None, *([1.0] * 9)]
    assert [e.kind for e in found.events] == ["restarting"]
    assert [p.duration_ms for p in found.points] == [100] * 10


@pytest.mark.long
def test_history_of_a_hundred_datasets_is_small_and_quick_to_look_at(tmp_path: Path) -> None:
    names = [f"dataset_{n}" for n in range(100)]
    app = graph(source("orders"), *(table(name, "orders") for name in names))
    phases = {"addBatch": 812, "commitBatch": 31, "getBatch": 3, "latestOffset": 12}
    phases |= {"queryPlanning": 44, "walCommit": 28, "commitOffsets": 17}
    counts = {"input": 1000, "written": 990, "quarantined": 10, "rule: paid": 7, "rule: named": 3}
    more = {"phases": phases, "counts": counts, "watermark": NOW, "complete_to": NOW}
    more |= {"greatest_event_time": NOW, "state_rows": 10**6, "state_bytes": 10**9}
    place = Home.at(tmp_path)
    place.prepare("shop", sources=[])
    with HistoryWriter(place.history) as writer:
        for first in range(0, 10_000, 20):
            for number in range(first, first + 20):
                # Half of them come one a second; before those, one a minute.
                at = ago(10_000 - number if number >= 5000 else 5000 + 60 * (5000 - number))
                read = {"read": {"orders": 1000 * number}, "total": 990 * number}
                writer.write([batch(name, number, at, **more, **read) for name in names])
    began = time.monotonic()

    found = OverviewView.of(place, app, History.read_only(place.history), now=NOW)

    took = time.monotonic() - began
    size = sum(file.stat().st_size for file in place.history.parent.iterdir())
    assert len(found.datasets) == 101
    assert took < 1
    assert size <= 100_000_000
