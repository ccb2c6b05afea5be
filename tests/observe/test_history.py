"""History is bounded, survives its writer, and never stops it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from millstream.observe import Event
from millstream.observe.history import History
from millstream.observe.history_limit import HistoryLimit
from millstream.observe.history_row import batch_of, batch_row, from_us
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import (
    BatchRecord,
    EventRecord,
    RunRecord,
    SettingRecord,
    Totals,
    rolled_up,
)

if TYPE_CHECKING:
    from pathlib import Path


START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=2)
SMALL = HistoryLimit(rows=300, events=20, runs=3)


def batch(number: int, dataset: str = "orders", *, at: datetime | None = None) -> BatchRecord:
    return BatchRecord(
        dataset,
        number,
        at or START + timedelta(seconds=number),
        run=1,
        duration_ms=40,
        phases={"addBatch": 30, "walCommit": 5},
        input=10,
        output=9,
        counts={"ok": 9, "late": 1},
        watermark=START,
        behind_rows=number % 7,
    )


def event(kind: str = "query_failed", dataset: str = "orders") -> EventRecord:
    return EventRecord(datetime.now(UTC), kind, dataset, "a detail", 1, "UDF_RAISED", "it", "fix")


def run(number: int) -> RunRecord:
    settings = {"home": SettingRecord("/srv/shop", "--home")}
    return RunRecord(number, START, 42, "here", "0.1", "ab12", "c0ffee", settings)


def written(path: Path, *records: BatchRecord | EventRecord | RunRecord) -> History:
    with HistoryWriter(path) as writer:
        assert writer.write(records)
    return History.read_only(path)


moments = st.integers(0, 2**52).map(from_us)
counts = st.dictionaries(st.text(max_size=9), st.integers(0, 2**60), max_size=4)
maybe = st.none() | st.integers(0, 2**60)
batches = st.builds(
    BatchRecord,
    st.just("orders"),
    st.integers(0, 2**40),
    moments,
    run=st.integers(0, 99),
    duration_ms=maybe,
    phases=counts,
    input=st.integers(0, 2**40),
    output=st.integers(0, 2**40),
    counts=counts,
    watermark=st.none() | moments,
    complete_to=st.none() | moments,
    greatest_event_time=st.none() | moments,
    state_rows=maybe,
    state_bytes=maybe,
    behind_rows=maybe,
    behind_s=st.none() | st.floats(0, 1e9),
    total=st.integers(0, 2**40),
    read=counts,
)


@given(batches)
def test_a_batch_is_read_as_it_was_written(record: BatchRecord) -> None:
    assert batch_of("orders", batch_row(record, 0)) == replace(
        record,
        state_rows=record.state_rows or None,
        state_bytes=record.state_bytes or None,
    )


@given(st.lists(batches, min_size=1, max_size=8), st.integers(1, 7))
def test_rolling_up_in_steps_gives_what_rolling_up_at_once_gives(
    records: list[BatchRecord], at: int
) -> None:
    head, tail = records[:at], records[at:]

    assert rolled_up([rolled_up(head), *tail]) == rolled_up(records)


def test_an_absent_history_is_empty(tmp_path: Path) -> None:
    history = History.read_only(tmp_path / "none.db")

    assert (history.batches("orders"), history.events(), history.runs()) == ((), (), ())
    assert (history.newest_id(), history.last("orders"), history.damage) == (0, None, None)
    assert not (tmp_path / "none.db").exists()


def test_what_is_written_is_read_by_another_connection_at_once(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history.db") as writer:
        history = History.read_only(tmp_path / "history.db")
        assert writer.write([run(1), batch(0), event()])
        first = history.newest_id()
        assert writer.write([batch(1)])

        assert history.batches("orders") == (batch(0), batch(1))
        assert history.lasts() == {"orders": batch(1)}
        assert history.runs() == (run(1),)
        [found] = history.events(dataset="orders")
        assert (found.kind, found.code, found.id) == ("query_failed", "UDF_RAISED", 1)
        assert history.events(after_id=found.id) == ()
        assert history.newest_id() > first


def test_text_that_is_not_unicode_is_written_all_the_same(tmp_path: Path) -> None:
    strange = replace(batch(0), counts={"rule: \udcff": 1})

    history = written(tmp_path / "history.db", strange, replace(event(), detail="a\udcff"))

    assert history.batches("orders") == (strange,)
    assert [e.detail for e in history.events()] == ["a?"]


@pytest.mark.parametrize("number", range(20))
def test_writers_that_begin_a_history_at_once_share_it(number: int, tmp_path: Path) -> None:
    path, reported, start = tmp_path / "history.db", list[Event](), threading.Barrier(4)

    def write(kind: str) -> None:
        with HistoryWriter(path, reported.append) as writer:
            start.wait()
            assert writer.write([event(kind)])

    threads = [threading.Thread(target=write, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert reported == []
    assert sorted(e.kind for e in History.read_only(path).events()) == ["0", "1", "2", "3"]
    assert [file.name for file in tmp_path.iterdir() if file.is_dir()] == []


def test_a_run_that_ends_replaces_the_one_that_began(tmp_path: Path) -> None:
    ended = replace(run(1), ended_at=START + timedelta(hours=1), outcome="stopped")

    assert written(tmp_path / "history.db", run(1), ended, run(2)).runs() == (run(2), ended)


def test_a_batch_that_is_written_already_is_left_out(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history.db") as writer:
        writer.write([batch(0), batch(1)])
    with HistoryWriter(tmp_path / "history.db") as writer:
        writer.write([batch(0), batch(1), batch(2)])

    history = History.read_only(tmp_path / "history.db")
    assert [b.batch for b in history.batches("orders")] == [0, 1, 2]
    assert history.totals()["orders"].input == 30


def test_batches_stay_in_their_order_when_the_clock_goes_back(tmp_path: Path) -> None:
    earlier = batch(1, at=START - timedelta(hours=1))

    history = written(tmp_path / "history.db", batch(0), earlier, batch(2))

    assert [b.batch for b in history.batches("orders")] == [0, 1, 2]


@pytest.mark.parametrize("spacing", [timedelta(milliseconds=50), timedelta(minutes=7)])
def test_history_is_bounded_and_nothing_is_lost_of_the_sums(
    tmp_path: Path, spacing: timedelta
) -> None:
    many = [batch(n, at=START + n * spacing) for n in range(2000)]
    with HistoryWriter(tmp_path / "history.db", limit=replace(SMALL, age=timedelta(10**5))) as w:
        for n in range(0, 2000, 50):
            w.write(many[n : n + 50])

    history = History.read_only(tmp_path / "history.db")
    kept = history.batches("orders")
    assert len(kept) <= 40
    assert kept[-5:] == tuple(many[-5:])
    assert [b.at for b in kept] == sorted(b.at for b in kept)
    gone = sum(b.batches for b in kept) - 2000
    assert gone == 0 or spacing > timedelta(minutes=1)
    assert history.totals()["orders"] == _totals(many)


def _totals(records: list[BatchRecord]) -> Totals:
    totals = Totals()
    for record in records:
        totals = totals.plus(record)
    return totals


def test_events_and_runs_are_bounded(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "history.db", limit=SMALL) as writer:
        writer.write([event() for _ in range(1500)])
        writer.write([run(n) for n in range(1500)])

    history = History.read_only(tmp_path / "history.db")
    assert [e.id for e in history.events(most=10**6)] == list(range(1500, 1480, -1))
    assert [r.id for r in history.runs(most=10**6)] == [1499, 1498, 1497]


def test_what_is_older_than_history_reaches_is_forgotten(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    with HistoryWriter(tmp_path / "history.db") as writer:
        writer.write([batch(0, at=now - timedelta(days=91)), batch(1, at=now)])

    [kept] = History.read_only(tmp_path / "history.db").batches("orders")
    assert kept.batch == 1


def test_a_history_of_long_records_shrinks_to_its_limit(tmp_path: Path) -> None:
    limit = HistoryLimit(used_bytes=3_000_000)
    long = {f"rule: {n} {'x' * 90}": n + 1 for n in range(20)}
    with HistoryWriter(tmp_path / "history.db", limit=limit) as writer:
        for n in range(0, 4000, 100):
            writer.write([replace(batch(m), counts=long) for m in range(n, n + 100)])
        writer.write([event() for _ in range(1000)])

    assert os.path.getsize(tmp_path / "history.db") < 2.5 * limit.used_bytes
    assert History.read_only(tmp_path / "history.db").last("orders") is not None


def test_at_most_so_many_points_are_returned_and_they_add_up(tmp_path: Path) -> None:
    history = written(tmp_path / "history.db", *(batch(n) for n in range(500)))

    points = history.batches("orders", since=START, most=50)

    assert 25 <= len(points) <= 50
    assert sum(p.input for p in points) == 5000
    assert max(p.behind_rows or 0 for p in points) == 6
    assert points[-1].batch == 499


def test_sums_of_equal_parts_cover_the_range(tmp_path: Path) -> None:
    history = written(tmp_path / "history.db", *(batch(n) for n in range(60)))

    sums = history.sums("orders", since=START, until=START + timedelta(minutes=2), parts=4)

    assert [s.input for s in sums] == [300, 300, 0, 0]
    assert [s.behind_rows for s in sums] == [6, 6, None, None]
    assert sums[1].at == START + timedelta(seconds=30)


@pytest.mark.parametrize(
    "content", [b"not a database, " * 99, b"SQLite format 3\0" + b"\xff" * 999]
)
def test_a_damaged_file_is_set_aside_and_another_begun(tmp_path: Path, content: bytes) -> None:
    path, events = tmp_path / "history.db", list[Event]()
    path.write_bytes(content)
    damaged = History.read_only(path)
    assert damaged.batches("orders") == ()
    assert damaged.damage is not None

    with HistoryWriter(path, events.append) as writer:
        assert writer.write([batch(0)])

    assert [e.kind for e in events] == ["history_set_aside"]
    assert (tmp_path / "history.db.damaged").read_bytes() == content
    assert damaged.batches("orders") == (batch(0),)
    assert damaged.damage is None


def test_a_file_damaged_while_it_is_open_is_set_aside_too(tmp_path: Path) -> None:
    path, events = tmp_path / "history.db", list[Event]()
    with HistoryWriter(path, events.append) as writer:
        writer.write([batch(n) for n in range(500)])
        writer.close()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (path.stat().st_size - 4096))
        assert writer.write([batch(500)])

    assert "history_set_aside" in [e.kind for e in events]
    assert [b.batch for b in History.read_only(path).batches("orders")] == [500]


def test_a_file_of_another_format_is_set_aside(tmp_path: Path) -> None:
    path, events = tmp_path / "history.db", list[Event]()
    written(path, batch(0))
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version=99")
    other.close()
    damage = History.read_only(path)
    assert damage.lasts() == {}
    assert damage.damage is not None
    assert "format 99" in damage.damage

    with HistoryWriter(path, events.append) as writer:
        assert writer.write([batch(1)])

    assert "format 99" in events[0].detail


def test_a_history_that_cannot_be_written_is_reported_once_and_again_when_it_can(
    tmp_path: Path,
) -> None:
    (tmp_path / "observe").write_text("a file where the folder belongs")
    events = list[Event]()
    writer = HistoryWriter(tmp_path / "observe" / "history.db", events.append)

    assert not writer.write([batch(0)])
    assert not writer.write([batch(1)])
    (tmp_path / "observe").unlink()
    assert writer.write([batch(2)])
    writer.close()

    assert [e.kind for e in events] == ["history_stopped", "history_resumed"]
    assert events[0].error is not None
    assert events[0].error.code == "HISTORY_UNWRITABLE"


def test_a_full_file_does_not_raise(tmp_path: Path) -> None:
    path, events = tmp_path / "history.db", list[Event]()
    with HistoryWriter(path, events.append) as writer:
        writer.write([batch(0)])
        assert writer._open is not None
        writer._open.connection.execute("PRAGMA max_page_count=1")
        assert not writer.write([batch(n) for n in range(1, 2000)])

        assert [e.kind for e in events] == ["history_stopped"]
        assert writer.write([batch(1)])
    assert [b.batch for b in History.read_only(path).batches("orders")] == [0, 1]


_ENDLESS = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord

writer = HistoryWriter(Path(sys.argv[1]))
for n in range(10**9):
    writer.write([BatchRecord("orders", n, datetime.now(UTC), input=1)])
    print(n, flush=True)
"""


def test_history_survives_a_killed_driver_and_is_read_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    driver = subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    history, seen = History.read_only(path), 0
    for line in driver.stdout:
        last = history.last("orders")
        assert last is not None
        assert last.batch >= int(line)
        seen = int(line)
        if seen >= 200:
            break
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    driver.stdout.close()

    kept = [b.batch for b in history.batches("orders")]
    assert kept == list(range(len(kept)))
    assert len(kept) > seen
    with HistoryWriter(path) as writer:
        assert writer.write([batch(len(kept), at=datetime.now(UTC))])
