"""The app under a script: rows arrive when they are sent, and time moves when a test says so."""

from collections.abc import Callable
from pathlib import Path

from millstream.loading import load
from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def test_sales_are_counted_per_item_and_a_late_order_is_kept_aside(
    stream: Callable[..., Script],
) -> None:
    with stream(load(APP)) as s:
        s.send("orders", at="12:00:03", id=1, item="tea", price=2.5, quantity=2)
        s.send("orders", at="12:00:09", id=2, item="tea", price=1.0, quantity=1)
        s.send("orders", at="12:05:00", id=3, item="bread", price=0.0, quantity=1)
        s.batch()
        s.send("orders", at="12:00:01", id=4, item="tea", price=9.0, quantity=1)
        s.batch()
        s.drain()

        assert s.table("sales").rows("item", "orders", "cents") == [("tea", 2, 600)]
        assert s.verdicts("orders") == {"ok": 3, "late": 1}
        s.assert_consistent()
