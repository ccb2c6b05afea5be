"""An application is decided by what its applicant owes at that moment, and the reason says so."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))
LIMIT = "would owe more than 50% of the income"


ENTRIES = (
    (1, "12:00:01", 0, "application", 15_000.0),
    (2, "12:00:02", 0, "application", 8_000.0),
    (3, "12:00:02", 1, "application", 100.0),
    (4, "12:00:03", 99, "application", 100.0),
    (5, "12:00:03", 2, "application", -5.0),
    (6, "12:10:00", 0, "repayment", 3_000.0),
    (7, "12:11:00", 2, "application", 7_000.0),
    (8, "12:20:00", 0, "application", 8_000.0),
    (9, "12:21:00", 2, "application", 15_000.0),
    (10, "12:40:00", 2, "repayment", 9_000.0),
)


def test_a_loan_counts_at_the_next_application_however_entries_arrive(
    stream: Callable[..., Script], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arrive(*numbers: int) -> None:
        for number, at, who, kind, amount in (ENTRIES[n - 1] for n in numbers):
            named = {"applicant": f"applicant-{who:02d}", "kind": kind, "amount": amount}
            s.send("ledger", entry=number, at=at, **named)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(Path(APP).read_text())
    (tmp_path / "applicants.csv").write_text(
        "applicant-00,40000,700\napplicant-01,90000,499\napplicant-02,30000,500\n"
    )
    app = load(str(tmp_path / "app.py"))
    with stream(app) as s:
        arrive(2, 1, 1, 4, 3, 5)
        s.batch()
        arrive(7, 6)
        s.crash(after="sink_commit", query="decisions")
        s.restart()
        arrive(9, 8)
        s.batch()
        arrive(10)
        s.crash(after="store_commit", query="answers")
        s.restart()
        s.drain()

        assert s.table("decisions").rows("application", "owed", "decision", "reason") == [
            (1, 0.0, "approved", "within the limit"),
            (2, 15_000.0, "refused", LIMIT),
            (3, 0.0, "refused", "score is under 500"),
            (4, 0.0, "refused", "applicant is not known"),
            (7, 0.0, "approved", "within the limit"),
            (8, 12_000.0, "refused", "applied more than 2 times in a day"),
            (9, 7_000.0, "refused", LIMIT),
        ]
        assert s.table("entries__quarantine").rows("entry") == [(5,)]
        s.assert_consistent()
    answer = app.get("answers", application=8)
    assert answer is not None
    assert answer["reason"] == "applied more than 2 times in a day"
    assert app.get("answers", application=6) is None


@pytest.mark.parametrize(
    ("income", "score", "owed", "today", "reason"),
    [
        (None, None, 0.0, 0, "applicant is not known"),
        (50_000.0, 499, 0.0, 9, "score is under 500"),
        (50_000.0, 500, 99_000.0, 2, "applied more than 2 times in a day"),
        (50_000.0, 500, 24_001.0, 1, LIMIT),
        (50_000.0, 500, 24_000.0, 1, None),
    ],
)
def test_the_first_reason_that_holds_is_given(
    income: float | None, score: int | None, owed: float, today: int, reason: str | None
) -> None:
    refusal = runpy.run_path(APP)["refusal"]
    row = SimpleNamespace(income=income, score=score, amount=1_000.0)

    assert refusal(row, owed, today) == reason
