"""Payments are judged by what came before them, by their own clock."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def test_a_payment_is_denied_for_what_came_before_it_however_it_arrives(
    stream: Callable[..., Script],
) -> None:
    def paid(number: int, at: str, amount: float, country: str = "DE", customer: int = 0) -> None:
        reported = {"amount": amount, "country": country, "confirmed": False}
        s.send("payments", payment=number, customer=f"customer-{customer:02d}", at=at, **reported)

    with stream(load(APP)) as s:
        paid(3, "12:00:04", 90.0)
        paid(1, "12:00:00", 0.5)
        paid(2, "12:00:02", 120.0)
        paid(2, "12:00:02", 120.0)
        paid(4, "12:00:03", 2.0, "BR", customer=1)
        paid(5, "12:00:02", 0.9, "DE", customer=1)
        s.batch()
        paid(6, "12:04:00", 800.0, "BR", customer=1)
        paid(7, "12:04:00", 5.0, customer=99)
        s.crash(after="sink_commit", query="decisions")
        s.restart()
        paid(8, "14:00:00", 20.0)
        paid(10, "14:00:00", 190.0)
        paid(9, "14:01:00", 20.0)
        s.batch()
        s.batch()

        abroad = ("two countries at once",)
        assert s.table("decisions").rows("payment", "decision", "against") == [
            (1, "approved", ()),
            (10, "approved", ()),
            (2, "approved", ()),
            (3, "denied", ("over the limit of an hour",)),
            (4, "denied", abroad),
            (5, "approved", ()),
            (6, "denied", ("over the limit of an hour", "much of the limit, abroad")),
            (7, "denied", ("unknown customer",)),
            (8, "denied", ("over the limit of an hour",)),
        ]
        assert s.table("customers").rows("customer", "payments", "denied", "last_denied") == [
            ("customer-00", 5, 2, 8),
            ("customer-01", 3, 2, 6),
            ("customer-99", 1, 1, 7),
        ]
        assert s.table("probed").rows("customer", "amount") == [("customer-01", 800.0)]
        s.assert_consistent()


def test_a_model_learns_from_all_customers_what_is_reported(stream: Callable[..., Script]) -> None:
    dice, noon = random.Random(1), datetime(2026, 1, 1, 12, tzinfo=UTC)
    with stream(load(APP)) as s:
        for number in range(240):
            is_stolen, at = dice.random() < 0.2, noon + timedelta(milliseconds=500 * number)
            paid = {"amount": 20.0 * dice.random(), "country": "DE", "confirmed": False}
            if is_stolen:
                paid |= {"amount": 500.0 + 500 * dice.random(), "country": "BR"}
                later = (at + timedelta(seconds=10)).isoformat()
                s.send("reports", payment=number, at=later)
            customer = f"customer-{dice.randrange(40):02d}"
            s.send("payments", payment=number, customer=customer, at=at.isoformat(), **paid)
            if number % 60 == 59:
                s.batch()
        for source in ("payments", "reports"):
            more = {"customer": "a", "amount": 1.0, "country": "DE"}
            more = more if source == "payments" else {}
            s.send(source, payment=9999, at="12:10:00", **more)
        s.crash(after="sink_commit", query="fraud")
        s.restart()
        s.drain()

        rows = s.table("fraud").rows("reported", "prediction", "_learnt", "_kind")
        scored = [row for row in rows if row[3] == "scored" and row[2] >= 60]
        assert sum(row[0] == row[1] for row in scored) > 0.97 * len(scored) > 90
        assert s.table("found").rows("by_model")
        s.assert_consistent()
