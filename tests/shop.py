"""What crash tests know of the small shop: how its orders come."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chaos import Folder

APP = str(Path(__file__).parent / "resources" / "shop.py")
START = datetime(2026, 11, 1, tzinfo=UTC)
ITEMS = ("pen", "ink", "pad")


def feeder(place: Path, seed: int) -> Folder:
    """Make orders: some twice, some late, some malformed, some free of charge."""
    dice = random.Random(seed)

    def line(number: int) -> str:
        if dice.random() < 0.03:
            return '{"id": '
        if number and dice.random() < 0.1:
            number -= 1
        late = timedelta(hours=1) if dice.random() < 0.03 else timedelta()
        order = {
            "id": number,
            "item": ITEMS[number % len(ITEMS)],
            "at": (START + timedelta(seconds=number / 4) - late).isoformat(),
            "price": float(number % 50),
        }
        return json.dumps(order)

    return Folder(place, line, source="orders", variable="SHOP_ORDERS")
