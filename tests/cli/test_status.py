from __future__ import annotations

import json
import os
import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import commit

from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, RunRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

SHOP = """\
import millstream as ms
app = ms.App("shop")
@app.source(event_time="at", watermark="1 minute")
def orders(): return ms.Memory("id BIGINT, at TIMESTAMP")
@app.source(live=True)
def clicks(): return ms.Rate(5)
@app.view
def recent(orders): return orders
@app.table()
def paid(recent): return recent
@app.table()
def waiting(paid): return paid
"""
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def shop(millstream: Callable[..., Outcome], tmp_path: Path) -> Home:
    Path("app.py").write_text(SHOP)
    return Home.at(tmp_path / ".millstream" / "shop")


def test_every_dataset_is_reported_from_the_home_alone(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    frontier = round(NOON.timestamp() * 1_000_000)
    began = datetime.now(UTC) - timedelta(milliseconds=1)  # a commit tells no more than those
    commit(home, "orders", {"ok": 5}, batch=4, frontier=frontier)
    commit(home, "paid", {"quarantined": 2}, batch=4, frontier=frontier)

    outcome = millstream("status", "--json")

    found = json.loads(outcome.out)
    assert (found["app"], found["driver"]) == ("shop", None)
    stands = {dataset["name"]: dataset for dataset in found["datasets"]}
    assert list(stands) == ["orders", "clicks", "paid", "waiting", "by_item"]
    orders = stands["orders"]
    assert (orders["batch"], orders["rows"], orders["version"]) == (4, 5, 2)
    assert {stands[n]["complete_to"] for n in ("orders", "paid")} == {"2026-01-01T12:00:00+00:00"}
    assert began < datetime.fromisoformat(orders["committed_at"]) <= datetime.now(UTC)
    assert stands["paid"]["verdicts"] == {"quarantined": 2}
    states = [dataset["state"] for dataset in stands.values()]
    assert states == ["ran", "live", "ran", "never ran", "never ran"]
    assert [stands[n]["is_declared"] for n in ("paid", "by_item")] == [True, False]


def test_a_source_that_its_clock_moves_is_reported(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    noon = round(NOON.timestamp() * 1_000_000)
    commit(home, "orders", {"ok": 5}, batch=4, frontier=noon, quiet_since=noon)

    reported, [found] = (
        millstream("status", "--select", "orders"),
        json.loads(millstream("status", "--select", "orders", "--json").out)["datasets"],
    )

    assert "2026-01-01 12:00 by the clock" in reported.out
    assert found["quiet_since"] == "2026-01-01T12:00:00+00:00"


def test_the_same_is_reported_to_people(millstream: Callable[..., Outcome], home: Home) -> None:
    outcome = millstream("status", "--select", "orders waiting")

    lines = outcome.out.splitlines()
    assert lines[0] == f"shop: {home.path}"
    assert lines[3].split()[:6] == ["orders", "source", "3", "7", "7", "1"]
    assert lines[3].endswith("1 late · 2 malformed")
    assert lines[4].endswith("never ran")
    assert lines[-1] == "  no driver runs"


def test_an_app_that_never_ran_is_reported_too(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("status")

    assert outcome.code == 0
    assert outcome.out.count("never ran") == 3


def test_a_running_driver_is_named(millstream: Callable[..., Outcome], home: Home) -> None:
    with Lease.acquire(home):
        outcome = millstream("status", "--home", str(home.path))

    reported = f"  ✓ a driver runs: pid {os.getpid()} on {socket.gethostname()} since "
    assert outcome.out.splitlines()[-1].startswith(reported)


def test_a_home_needs_no_app_file(millstream: Callable[..., Outcome], home: Home) -> None:
    Path("app.py").unlink()

    outcome = millstream("status", "--home", str(home.path), "--json")

    stands = json.loads(outcome.out)["datasets"]
    assert [(d["name"], d["kind"]) for d in stands] == [
        ("by_item", "table"),
        ("orders", "source"),
        ("paid", "table"),
    ]


def test_the_commit_of_a_driver_that_takes_a_table_is_not_taken_for_a_batch(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    from millstream.lake.delta import FencedTable

    before = json.loads(millstream("status", "--json").out)["datasets"][2]
    FencedTable(home.table("paid"), name="paid", epoch=2).take()

    after = json.loads(millstream("status", "--json").out)["datasets"][2]

    assert after == before | {"version": 2}


def test_a_home_in_which_nothing_ran_is_refused_without_an_app(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("status", "--home", "nowhere")

    assert outcome.code == 2
    assert outcome.err.startswith("[HOME_EMPTY] nothing has run in home ")


def test_a_selection_needs_the_app_that_says_who_reads_whom(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("status", "--home", str(home.path), "--select", "paid+")

    assert outcome.code == 2
    assert outcome.refusal == [
        f"[SELECTION_WITHOUT_APP] home {str(home.path)!r} does not say which dataset reads which",
        "  fix: name the app file too, or leave --select and --exclude out",
    ]


def test_the_home_of_another_app_is_refused(millstream: Callable[..., Outcome], home: Home) -> None:
    Path("app.py").write_text(SHOP.replace('"shop"', '"other"'))

    outcome = millstream("status", "app.py", "--home", str(home.path))

    assert outcome.code == 2
    assert outcome.err.startswith(f"[HOME_OTHER_APP] home {str(home.path)!r} belongs to app 'shop'")


def test_a_home_that_was_only_begun_is_reported_as_far_as_it_is(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    shutil.rmtree(home.lease)
    shutil.rmtree(home.table("paid") / "_delta_log")
    (home.table("waiting") / "_delta_log").mkdir(parents=True)

    outcome = millstream("status", "--json")

    states = {d["name"]: d["state"] for d in json.loads(outcome.out)["datasets"]}
    assert states["orders"] == "ran"
    assert (states["paid"], states["waiting"]) == ("never ran", "never ran")


def test_a_commit_that_cannot_be_read_is_named_and_hides_nothing_else(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    commit_file = home.table("paid") / "_delta_log" / f"{1:020d}.json"
    commit_file.write_text('{"commitInfo":{"times')

    outcome = millstream("status")

    assert outcome.code == 0
    assert f"[HOME_DAMAGED] {str(commit_file)!r} is damaged: JSONDecodeError" in outcome.out
    [paid] = [line for line in outcome.out.splitlines() if line.startswith("  paid")]
    assert paid.endswith("damaged")
    assert "1 late · 2 malformed" in outcome.out


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"pid": 3}'])
def test_a_manifest_or_lease_that_cannot_be_read_is_named(
    text: str, millstream: Callable[..., Outcome], home: Home
) -> None:
    with Lease.acquire(home) as lease:
        file = home.lease / f"{lease.epoch:08d}"
        file.write_text(text)
        outcome = millstream("status")

    assert outcome.code == 3
    assert outcome.err.startswith(f"[HOME_DAMAGED] {str(file)!r} is damaged: ")


def test_the_exit_code_says_whether_all_is_well_and_a_dead_driver_does_not_hide_it(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    now = datetime.now(UTC)
    Path("app.py").write_text(WATCHED)
    commit(home, "orders", {"ok": 1}, batch=0)
    with HistoryWriter(home.history) as writer:
        run = RunRecord(1, now, 42, "here", "0.1", "ab12")
        writer.write([run, BatchRecord("orders", 0, now - timedelta(minutes=6), run=1)])

    dead = millstream("status", "--exit-code")
    with Lease.acquire(home):
        stale = millstream("status", "--exit-code")
        with HistoryWriter(home.history) as writer:
            writer.write([BatchRecord("orders", 1, now, run=1)])
        well = millstream("status", "--exit-code")

    assert (dead.code, stale.code, well.code) == (1, 1, 0)
    assert "✗ nothing runs since" in dead.out
    assert "✗ orders is stale since 1 minute: its last batch was 6 minutes ago" in stale.out
    assert "✓ the dataset is well" in well.out
    [event] = History.read_only(home.history).events()
    assert (event.kind, event.code) == ("stale", "freshness")


WATCHED = """\
import millstream as ms
app = ms.App("shop")
@app.source(freshness="5 minutes")
def orders(): return ms.Memory("id BIGINT, at TIMESTAMP")
"""
