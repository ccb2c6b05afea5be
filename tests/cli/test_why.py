from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import commit
from tests.graphs import graph, source, table

from millstream.cli.why import show
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.lake.log import Commit, Facts
from millstream.loading import load
from millstream.model.dataset import Table
from millstream.plan.windows import Window, windows_of
from millstream.views.why import SourceTimeView, WhyView, closing_of, slowest, speed_of, waiting_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

SHOP = """\
import millstream as ms
from pyspark.sql import functions as F
app = ms.App("shop")
@app.source(event_time="at", watermark="1 minute")
def orders(): return ms.Memory("id BIGINT, at TIMESTAMP")
@app.source(event_time="at", watermark="2 minutes", idle="10 minutes")
def returns(): return ms.Memory("id BIGINT, at TIMESTAMP")
@app.source()
def prices(): return ms.Memory("id BIGINT")
@app.view
def both(orders, returns): return orders.unionByName(returns)
@app.table()
def movements(both): return both.groupBy(F.window("at", "5 minutes")).count()
@app.table()
def sold(orders): return orders
app.sql("hours", "SELECT window, count(*) AS n FROM orders GROUP BY window(at, '1 hour')")
@app.table()
def cheap(prices): return prices
"""
ORDERS = 'ms.Memory("id BIGINT, at TIMESTAMP")'
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MS = timedelta(milliseconds=1)


def us(minutes: float) -> int:
    return round((NOON + minutes * MINUTE).timestamp() * 1_000_000)


def order(home: Home, batch: int, *, minutes: float) -> None:
    printed = {"batch": batch, "changed": batch, "event_time": "at"}
    times = {"frontier": us(minutes - 1), "greatest_event_time": us(minutes)}
    commit(home, "orders", {"ok": 3}, **times, **printed)


@pytest.fixture
def shop(millstream: Callable[..., Outcome], tmp_path: Path) -> Home:
    """Orders are complete to 12:09, returns to 12:00, and what is made of both to 12:00 too."""
    Path("app.py").write_text(SHOP)
    home = Home.at(tmp_path / ".millstream" / "shop")
    home.prepare("shop", sources=["orders", "returns", "prices"])
    order(home, 0, minutes=5)
    commit(home, "returns", {"ok": 1}, frontier=us(0), greatest_event_time=us(2), changed=3)
    commit(home, "movements", {"written": 2}, frontier=us(0))
    commit(home, "cheap", {"written": 2})
    order(home, 1, minutes=10)  # last: of two commits in one millisecond nobody knows the speed
    return home


def test_the_source_that_holds_the_watermark_and_the_window_to_come_are_shown(
    millstream: Callable[..., Outcome], shop: Home
) -> None:
    found = json.loads(millstream("why", "movements", "--json").out)

    assert (found["held_by"], found["complete_to"]) == ("returns", "2026-01-01T12:00:00+00:00")
    assert [s["name"] for s in found["sources"]] == ["orders", "returns"]
    [closing] = found["closing"]
    assert closing == {
        "kind": "window",
        "length": "PT300S",
        "ends": "2026-01-01T12:05:00+00:00",
        "needs": "2026-01-01T12:07:00.001000+00:00",
        "by_rows_at": None,
        "by_clock_at": closing["by_clock_at"],
    }
    came = datetime.fromisoformat(found["sources"][1]["last_rows_at"])
    assert datetime.fromisoformat(closing["by_clock_at"]) == came + 10 * MINUTE


def test_the_same_is_printed_for_people(millstream: Callable[..., Outcome], shop: Home) -> None:
    lines = millstream("why", "movements").out.splitlines()

    assert lines[0] == "movements: table · append, 2 rows, complete to 2026-01-01 12:00"
    assert lines[2:7] == [
        "  no driver runs: nothing moves until `millstream run` does (ran)",
        "  returns is complete to 2026-01-01 12:00 by its rows, less than the others: "
        "that holds the watermark",
        "  the window of 5 minutes that ends at 2026-01-01 12:05 comes when returns gives an event "
        "of 2026-01-01 12:07:00.001 or later",
        "    when is not known: it takes two batches to know its speed",
        lines[6],
    ]
    assert re.fullmatch(r"    without one, by the clock, at (\S+ )?\d\d:\d\d(:\d\d)?", lines[6])
    assert lines[-1].split()[0] == "returns"


def test_other_reasons_are_printed_too(millstream: Callable[..., Outcome], shop: Home) -> None:
    with Lease.acquire(shop):
        hours = millstream("why", "hours").out
        cheap = millstream("why", "cheap").out
        sold = millstream("why", "sold").out

    assert "no driver" not in hours + cheap + sold
    assert "the window of 1 hour that ends at 2026-01-01 13:00 comes when orders gives" in hours
    assert "    at its speed of late" in hours
    assert (
        "prices has no event time: its rows are passed on as they arrive, and none is final"
        in cheap
    )
    assert "orders is complete to 2026-01-01 12:09 by its rows: that holds the watermark" in sold


def test_a_source_that_has_stopped_is_shown(shop: Home, capsys: pytest.CaptureFixture[str]) -> None:
    graph = load("app.py").graph

    show(WhyView.of(shop, graph, "hours", now=datetime.now(UTC) - timedelta(hours=3)))
    assert "    at its speed of late: about " in capsys.readouterr().out
    show(WhyView.of(shop, graph, "hours", now=datetime.now(UTC) + timedelta(hours=3)))

    printed = capsys.readouterr().out
    due = r"that was due (2 h 59 min|3 h( \d+ s)?) ago: it has slowed down or stopped\n"
    assert re.search(due, printed)


def test_idle_is_advised_to_a_source_that_is_quiet_and_follows_the_clock(
    shop: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)

    def is_advised(after: timedelta) -> bool:
        show(WhyView.of(shop, load("app.py").graph, "hours", now=now + after))
        hint = '    idle="10 minutes" on orders lets the clock advance without its rows\n'
        return hint in capsys.readouterr().out

    with Lease.acquire(shop):
        assert not is_advised(180 * MINUTE), "its events are of long ago"
        order(shop, 2, minutes=(now - NOON) / MINUTE)
        assert not is_advised(9 * MINUTE), "rows came 9 minutes ago"
        assert is_advised(11 * MINUTE)
    assert not is_advised(11 * MINUTE), "no driver reads it"
    Path("app.py").write_text(SHOP.replace(ORDERS, 'ms.Table("other", "orders")', 1))
    with Lease.acquire(shop):
        assert not is_advised(11 * MINUTE), "check refuses idle on a table that is followed"


def test_a_source_without_rows_holds_all_and_what_is_unknown_is_named(
    millstream: Callable[..., Outcome], tmp_path: Path
) -> None:
    Path("app.py").write_text(SHOP)

    printed, refused = millstream("why", "movements"), millstream("why", "movement")

    assert "orders has no row yet" in printed.out
    assert (refused.code, refused.refusal[0]) == (
        2,
        "[UNKNOWN_DATASET] there is no dataset 'movement'",
    )


def test_an_idle_source_without_any_row_is_complete_by_its_clock() -> None:
    def printed(name: str, minutes: float | None, state: str = "ran") -> SourceTimeView:
        moment = None if minutes is None else NOON + minutes * MINUTE
        return SourceTimeView(name, state, "1 minute", None, moment)

    assert slowest([printed("a", 3), printed("b", 2), printed("c", None, "live")]) == printed(
        "b", 2
    )
    assert slowest([printed("a", 3), printed("b", None)]) == printed("b", None)
    assert slowest([printed("c", None, "live")]) is None


def test_the_speed_of_a_source_says_when_its_next_window_closes() -> None:
    def batch(minutes: float, event: float) -> Commit:
        facts = Facts(greatest_event_time=us(event))
        return Commit(0, NOON + minutes * MINUTE, "WRITE", facts, is_batch=True)

    speed = speed_of([batch(4, 8), batch(2, 5), batch(0, 0)])
    assert speed == 2
    assert speed_of([batch(4, 8)]) is None
    assert speed_of([batch(4, 8), batch(4, 5)]) is None
    holder = SourceTimeView(
        "a",
        "ran",
        "1 minute",
        None,
        greatest_event_time=NOON + 8 * MINUTE,
        last_rows_at=NOON + 4 * MINUTE,
        speed=speed,
    )

    closing = closing_of(Window(5 * MINUTE, 5 * MINUTE), NOON + 7 * MINUTE, holder)
    [waiting] = waiting_of(10 * MINUTE, NOON - 3 * MINUTE, holder)

    assert (closing.ends, closing.needs) == (NOON + 10 * MINUTE, NOON + 11 * MINUTE + MS)
    assert closing.by_rows_at == NOON + 5.5 * MINUTE + MS / 2
    assert closing.by_clock_at is None
    assert (waiting.ends, waiting.needs) == (NOON + 18 * MINUTE, NOON + 19 * MINUTE + MS)
    assert waiting.by_rows_at == NOON + 9.5 * MINUTE + MS / 2
    assert [*waiting_of(10 * MINUTE, NOON + 8 * MINUTE, holder)] == []


@pytest.mark.parametrize("longer", [timedelta(), MS])
def test_what_waits_for_more_is_printed_for_people(
    longer: timedelta, shop: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    view = WhyView.of(shop, load("app.py").graph, "sold")
    [source] = view.sources
    [waiting] = waiting_of(120 * MINUTE + longer, NOON, source)

    show(replace(view, closing=(waiting,)))

    assert capsys.readouterr().out.splitlines()[4:6] == [
        "  a row waits up to 2 hours of event time for what may follow it",
        "  what began by 2026-01-01 12:10 is final when orders gives an event of "
        f"2026-01-01 14:11:00.00{2 if longer else 1} or later",
    ]


def test_windows_are_found_where_they_are_written_plainly() -> None:
    def build(a: object) -> object:
        """Group by window("at", "10 minutes", '5 minutes') and by window(at, '1 month')."""
        return a

    answers = graph(source("a"), Table("t", ("a",), build, source("a").at), table("u", "a"))

    assert windows_of(answers, "t") == (Window(10 * MINUTE, 5 * MINUTE),)
    assert windows_of(answers, "u") == windows_of(answers, "a") == ()
