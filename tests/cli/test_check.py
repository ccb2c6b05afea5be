from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.graphs import AT, graph, source

from millstream.cli.check import show
from millstream.errors import fault
from millstream.views.report import CheckView

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from tests.cli.conftest import Outcome

SOUND = """\
import millstream as ms
app = ms.App("shop")
@app.source()
def orders(): return ms.Memory("id BIGINT")
@app.view
def recent(orders): return orders
app.sql("paid", "SELECT id FROM recent")
"""
WRONG = (
    SOUND
    + """\
app.sql("late", "SELECT id FROM ordrs")
@app.table(mode="updat")
def daily(paid): return paid
"""
)


def test_a_sound_app_is_described(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(SOUND)

    outcome = millstream("check", "--static")

    assert (outcome.code, outcome.out) == (0, "✓ shop: 1 source, 1 view, 1 table\n")


def test_all_faults_are_shown_at_once_with_place_and_fix(
    millstream: Callable[..., Outcome],
) -> None:
    Path("app.py").write_text(WRONG)

    outcome = millstream("check", "app.py")

    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        "[UNKNOWN_INPUT] 'late' reads 'ordrs', which is not declared",
        "  at:  app.py:8",
        "  fix: did you mean 'orders'? declared names are daily, late, orders, paid, recent",
        "",
        "[OPTION_REFUSED] 'daily' has mode='updat'",
        "  at:  app.py:9",
        "  fix: did you mean 'update'? mode is one of append, update, complete",
        "",
        "✗ shop: 2 faults",
        "  more: millstream explain CODE",
    ]


def test_faults_have_one_shape_in_json(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(WRONG)

    outcome = millstream("check", "app.py", "--json")

    found = json.loads(outcome.out)
    assert found["app"] == {
        "name": "shop",
        "sources": 1,
        "views": 1,
        "tables": 3,
        "models": 0,
        "streams": 0,
        "alerts": 0,
        "serves": 0,
    }
    assert found["faults"][1] == {
        "code": "OPTION_REFUSED",
        "what": "'daily' has mode='updat'",
        "fix": "did you mean 'update'? mode is one of append, update, complete",
        "file": "app.py",
        "line": 9,
    }


def test_an_app_file_that_raises_is_reported_in_a_few_lines(
    millstream: Callable[..., Outcome],
) -> None:
    Path("app.py").write_text("1 / 0\n")

    outcome = millstream("check")

    assert outcome.code == 1
    assert outcome.err.startswith(
        "[APP_FILE] app file 'app.py' raises ZeroDivisionError: division by zero\n  at:  app.py:1\n"
    )


def test_a_warning_is_reported_and_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    warning = fault(
        "UNBOUNDED_STATE",
        at=AT,
        operator="an aggregation",
        dataset="sold",
        why="it has no watermark",
        fix="give it one",
    )

    view = CheckView.of(graph(source("orders")), [warning])
    show(view)

    assert (view.faults, [w.code for w in view.warnings]) == ((), ["UNBOUNDED_STATE"])
    assert capsys.readouterr().out.splitlines() == [
        "! [UNBOUNDED_STATE] the state of an aggregation in 'sold' grows without bound: it has no "
        "watermark",
        "  at:  app.py:7",
        "  fix: give it one",
        "",
        "✓ shop: 1 source",
        "  1 warning",
        "  more: millstream explain CODE",
    ]
