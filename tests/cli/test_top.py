"""`millstream top` shows the datasets live, and does what its keys say."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st
from tests.cli.conftest import commit

from millstream.cli.top import Screen
from millstream.loading import find_deployed
from millstream.observe.history import History
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, RunRecord
from millstream.views.history import sparkline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home

SHOP = """\
import millstream as ms
app = ms.App("shop")
@app.source(event_time="at", watermark="1 minute")
def orders(): return ms.Memory("id BIGINT, at TIMESTAMP")
@app.table()
def paid(orders): return orders
"""


@pytest.fixture(autouse=True)
def shop(millstream: Callable[..., Outcome], home: Home) -> Home:
    Path("app.py").write_text(SHOP)
    now = datetime.now(UTC)
    commit(home, "orders", {"ok": 5}, batch=4)
    with HistoryWriter(home.history) as writer:
        ended = RunRecord(1, now, 42, "here", "0.1", "ab12", ended_at=now, outcome="stopped")
        batches = [
            BatchRecord("orders", n, now - timedelta(seconds=60 - n), input=n, total=100 * n)
            for n in range(9)
        ]
        paid = BatchRecord("paid", 0, now, duration_ms=1234, read={"orders": 500})
        writer.write([ended, *batches, paid])
    return home


def test_into_a_pipe_the_datasets_are_printed_once(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("top")

    lines = outcome.out.splitlines()
    assert lines[0].startswith("shop: nothing runs since")
    assert lines[2].split()[:4] == ["dataset", "kind", "state", "in/s"]
    assert "300" in lines[4]
    assert "1234 ms" in lines[4]
    assert "█" in lines[3]


def test_json_is_the_overview(millstream: Callable[..., Outcome]) -> None:
    found = json.loads(millstream("top", "--json").out)

    assert [dataset["name"] for dataset in found["datasets"]] == ["orders", "paid"]
    assert found["datasets"][1]["behind_rows"] == 300


def test_keys_sort_choose_explain_and_leave(shop: Home) -> None:
    place, graph = find_deployed(None, None)
    screen = Screen(place, graph, History.read_only(place.history))

    def names(*keys: str) -> list[str]:
        for key in keys:
            screen.press(key)
            screen.ordered(screen.look())
        return [dataset.name for dataset in screen.ordered(screen.look())]

    assert names("b") == ["paid", "orders"]
    assert names("n", "down", "down", "down", "up") == ["orders", "paid"]
    assert screen.chosen == 0
    screen.press("down")
    screen.press("enter")
    assert screen.why == "paid"
    assert any("no driver runs" in line for line in screen.lines(screen.look()))
    screen.press("q")
    assert [screen.why, screen.is_over] == [None, False]
    screen.press("x")
    screen.press("q")
    assert screen.is_over


def in_terminal() -> tuple[subprocess.Popen[bytes], int]:
    """Start it; return it, and the side of its terminal that a person sees."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "millstream.cli", "top", "--every", "0.1"]
    size = {"COLUMNS": "140", "LINES": "30", "TERM": "xterm"}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **size}
    )
    os.close(theirs)
    return process, ours


def test_it_ends_with_its_terminal(shop: Home) -> None:
    process, ours = in_terminal()
    _until(ours, "paid")

    os.close(ours)

    process.wait(timeout=30)


def test_in_a_terminal_it_is_redrawn_until_q_is_pressed(shop: Home) -> None:
    process, ours = in_terminal()
    seen = _until(ours, "paid")
    os.write(ours, b"\x1b[B\r")
    seen += _until(ours, "q back")
    os.write(ours, b"q")
    os.write(ours, b"q")

    assert process.wait(timeout=30) == 0
    assert "in/s" in seen
    os.close(ours)


def _until(terminal: int, text: str, within_s: float = 30) -> str:
    seen, until = "", time.monotonic() + within_s
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], max(until - time.monotonic(), 0))
        assert ready, seen
        seen += os.read(terminal, 65536).decode(errors="replace")
    return seen


@given(st.lists(st.integers(0, 10**12), max_size=40))
def test_a_bar_shows_whatever_is_not_nothing(numbers: list[int]) -> None:
    line, last = sparkline(numbers), numbers[-15:]

    if any(last):
        assert [bar == " " for bar in line] == [number == 0 for number in last]
        assert "█" in line
    else:
        assert line == ""
