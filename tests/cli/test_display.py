from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.cli.display import JsonDisplay, LiveDisplay, PlainDisplay, condition, event_lines
from millstream.views.json_text import FaultView
from millstream.views.progress import BehindView, DatasetView, EventView, UnderWayView

if TYPE_CHECKING:
    import pytest

ORDERS = DatasetView(
    "orders",
    "source",
    "default",
    "running",
    7,
    input_rate=1234.0,
    output_rate=1200.0,
    batch_ms=240,
    complete_to=datetime(2026, 5, 1, 12, tzinfo=UTC),
    verdicts={"late": 1},
    totals={"late": 4, "malformed": 2},
)


def test_a_pipe_gets_one_line_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay()

    display.show([ORDERS])
    display.show([ORDERS])

    [line] = capsys.readouterr().out.splitlines()
    assert line[10:] == (
        "orders                batch      7     1 234 in/s     1 200 out/s    240 ms  "
        "complete to 2026-05-01 12:00  4 late · 2 malformed in total"
    )


def test_json_gets_one_object_a_line_and_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    display = JsonDisplay()

    display.say("hello")
    display.report("jars", "cached")
    display.show([ORDERS])

    [line] = capsys.readouterr().out.splitlines()
    shape = json.loads(line)["dataset"]
    assert (shape["name"], shape["complete_to"]) == ("orders", "2026-05-01T12:00:00+00:00")
    assert (shape["verdicts"], shape["totals"]) == ({"late": 1}, {"late": 4, "malformed": 2})


def test_a_terminal_of_80_columns_gets_a_table_with_words_above_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for forced in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(forced, raising=False)

    with LiveDisplay() as display:
        display.show([replace(ORDERS, totals={"late": 4}, state="restarting")])
        display.say("[odd] markup stays as it is")

    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "",
        "[odd] markup stays as it is",
        "  dataset  kind    trigger   in/s  out/s   batch  complete to       verdicts",
        "  orders   source  default  1 234  1 200  240 ms  2026-05-01 12:00  RESTARTING ·",
        "                                                                    4 late in",
        "                                                                    total",
    ]


def test_what_was_set_aside_says_whether_it_is_of_a_batch_or_in_total() -> None:
    live = replace(ORDERS, kind="live", batch=-1, totals=None)

    reported = [condition(each) for each in (ORDERS, live, replace(ORDERS, totals={}))]

    assert reported == ["4 late · 2 malformed in total", "1 late in its last batch", "ok"]


def test_a_failure_is_reported_with_what_where_and_fix() -> None:
    fault = FaultView("LATE_ROWS", "late rows came", "wait longer", "app.py", 3)

    reported = event_lines(EventView("restarting", "orders", "again in 2 s", fault))

    assert reported is not None
    assert reported.splitlines() == [
        "! orders: failed, again in 2 s",
        "  [LATE_ROWS] late rows came",
        "    at:  app.py:3",
        "    fix: wait longer",
    ]


def test_a_query_that_starts_goes_without_saying() -> None:
    assert event_lines(EventView("started", "orders", "", None)) is None


UNDER_WAY = UnderWayView(done=12, tasks=48, rows=1_200_000, seconds=8.0, remaining_s=24.0)


def test_a_pipe_gets_a_line_now_and_then_while_a_batch_takes_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = PlainDisplay()

    display.show([replace(ORDERS, batch=-1, under_way=UNDER_WAY)])
    display.show([replace(ORDERS, batch=-1, under_way=UNDER_WAY)])

    [line] = capsys.readouterr().out.splitlines()
    assert line[10:] == (
        "orders                batch      0  12 of 48 tasks done  1 200 000 rows read  "
        "about 24 s left  for 8 s"
    )


def test_the_table_shows_how_far_a_long_batch_is() -> None:
    first = replace(UNDER_WAY, done=0, tasks=1, rows=0, remaining_s=None)

    assert condition(replace(ORDERS, under_way=UNDER_WAY)) == (
        "12 of 48 tasks done · 1 200 000 rows read · about 24 s left · "
        "4 late · 2 malformed in total"
    )
    assert condition(replace(ORDERS, totals={}, under_way=first)) == "0 of 1 task done"


def test_json_shows_how_far_a_long_batch_is(capsys: pytest.CaptureFixture[str]) -> None:
    display = JsonDisplay()

    display.show([ORDERS])
    display.show([replace(ORDERS, under_way=UNDER_WAY)])
    display.show([replace(ORDERS, under_way=UNDER_WAY)])

    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["dataset"]["under_way"] is None
    assert second["dataset"]["under_way"] == {
        "done": 12,
        "tasks": 48,
        "rows": 1_200_000,
        "seconds": 8.0,
        "remaining_s": 24.0,
    }


def test_a_query_that_is_behind_shows_how_many_rows_and_how_long_they_take() -> None:
    behind = replace(ORDERS, totals={}, behind=BehindView(12_400_000, 190.4))

    assert condition(behind) == "behind 12 400 000 rows, 3 minutes at this rate"
    assert condition(replace(behind, under_way=UNDER_WAY)).startswith(
        "behind 12 400 000 rows, 3 minutes at this rate · 12 of 48 tasks done"
    )
