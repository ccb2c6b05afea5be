"""Errors of the test kit, as they are met."""

from __future__ import annotations

from millstream.crash import POINTS
from millstream.errors import (
    ClockBackwardsError,
    ContractBrokenError,
    CrashNotReachedError,
    DamageUnnoticedError,
    DriverDeadError,
    ExtraMissingError,
    Location,
    MarksMissingError,
    NameNotFoundError,
    NotDeterministicError,
    NotExactlyOnceError,
    NotPrefixConsistentError,
    RowsOfNoSourceError,
    StraceMissingError,
    UnknownCrashPointError,
    UnknownInScriptError,
)

SCRIPT = """\
def test_counterexample(stream):
    with stream(app) as s:
        s.send('orders', item='pen', price=2.0)
        s.batch()
        s.send('orders', item='pen', price=3.0)
        s.batch()"""
SAMPLES = (
    UnknownCrashPointError("sink_comit", known=tuple(POINTS)),
    CrashNotReachedError(
        "quarantine_commit", query="paid", passed=["batch_planned", "batch_staged"]
    ),
    CrashNotReachedError("quarantine_commit", query=None, passed=[]),
    DriverDeadError("batch"),
    ClockBackwardsError("-1 day, 23:55:00"),
    UnknownInScriptError("source", "order", owner="app 'shop'", known=["orders"]),
    UnknownInScriptError("column", "idd", owner="source 'orders'", known=["id", "at"]),
    RowsOfNoSourceError("shop", sources=["orders", "clicks"]),
    NotDeterministicError(
        "priced",
        one="Row(item='pen', price=2.0)",
        other="Row(item='pen', price=3.0)",
        at=Location("app.py", 11),
    ).shown_by(SCRIPT),
    NotPrefixConsistentError(
        ["sold lacks Row(item='pen', n=2); has, and should not, Row(item='pen', n=1)"],
        script=SCRIPT,
    ),
    StraceMissingError(),
    NameNotFoundError("nowhere:Feeder", cause="No module named 'nowhere'"),
    DamageUnnoticedError(["run as it is: SILENTLY WRONG  cut checkpoints/paid/offsets/3"], seed=42),
    NotExactlyOnceError(["app.py: 'paid': batch 7 is there again"], seed=42),
    MarksMissingError("README.md", marks=["<!-- chaos:begin -->", "<!-- chaos:end -->"]),
    ExtraMissingError("verify", module="hypothesis", extra="testing"),
    ContractBrokenError(
        wanted="exactly once",
        found="at least once",
        broken=[
            "✗ crash after the write, then a retry: 0 rows missing, 3 that should not be there"
        ],
    ),
)
