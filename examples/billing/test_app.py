"""Billing: each event charged once, to the cent."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def used(number: int, at: str, quantity: str, product: str = "compute hour") -> dict[str, object]:
    return {"id": number, "at": at, "customer": "ann", "product": product, "quantity": quantity}


def test_what_was_used_is_charged_once_and_exactly(stream: Callable[..., Script]) -> None:
    with stream(load(APP)) as s:
        s.send("usage", **used(1, "12:00:01", "10.001"))  # 0.4250425
        s.send("usage", **used(2, "12:00:02", "0.001", "thousand calls"))  # 0.0003
        s.send("usage", **used(3, "12:00:03", "5", "prototype"))
        s.send("usage", **used(4, "12:00:04", "0"))
        s.batch()
        s.send("usage", **used(1, "12:00:01", "10.001"))
        s.send("usage", **used(5, "12:03:00", "2", "thousand calls"))  # 0.6
        s.send("usage", '{"id": 6, "customer": "ann"')
        s.crash(after="sink_commit", query="invoices")
        s.restart()
        s.batch()
        s.send("usage", **used(7, "12:00:30", "1000"))
        s.send("usage", **used(8, "2025-12-31T23:59:59Z", "1000"))
        s.drain()

        assert s.table("invoices").rows() == [("ann", "2026-01", 3, Decimal("1.03"))]
        assert s.table("revenue").rows() == [("2026-01", 1, Decimal("1.03"))]
        assert s.table("charges__quarantine").rows("id") == [(3,), (4,)]
        assert s.verdicts("usage") == {"ok": 6, "late": 2, "malformed": 1}
        s.assert_consistent()
