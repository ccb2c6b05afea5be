"""What crash tests know of the small shop: its input, its driver, and what must be true of it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

APP = Path(__file__).parent / "resources" / "shop.py"
START = datetime(2026, 11, 1, tzinfo=UTC)
ITEMS = ("pen", "ink", "pad")


class Shop:
    """A folder of orders that grows, a home, and drivers to kill."""

    def __init__(self, place: Path, seed: int) -> None:
        self.orders, self.home = place / "orders", Home.at(place / "home")
        self.log = place / "driver.log"
        self.orders.mkdir(parents=True)
        self.dice = random.Random(seed)
        self.lines: Counter[tuple[str, int]] = Counter()
        self._number = 0

    def put(self, rows: int = 20) -> None:
        """Add a file of orders: some twice, some late, some malformed, some free of charge."""
        name = f"{self._number:05d}.json"
        text = "".join(self._line(self._number * rows + n) + "\n" for n in range(rows))
        temporary = self.orders / f".{name}"
        temporary.write_text(text)
        temporary.rename(self.orders / name)
        self.lines.update((name, line) for line in range(1, rows + 1))
        self._number += 1

    @contextmanager
    def driver(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a driver in a process of its own; in the end it is killed, as by a power cut."""
        environment = {**os.environ, "SHOP_ORDERS": str(self.orders)}
        with self.log.open("ab") as log:
            driver = subprocess.Popen(
                [sys.executable, str(APP), str(self.home.path), *options],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield driver
        finally:
            driver.kill()
            driver.wait()

    def batches(self) -> int:
        """How many batches all tables have together."""
        return sum(_batches(self.home.table(name)) for name in self.home.tables)

    def landed(self) -> list[dict[str, Any]]:
        """Every landed row."""
        columns = ["_origin", "_position", "_verdict", "_batch"]
        table = DeltaTable(str(self.home.table("orders"))).to_pyarrow_table(columns=columns)
        return [dict(row) for row in table.to_pylist()]

    def assert_every_line_landed_once(self) -> None:
        """Check input rows = landed rows, line by line, and that the ledger says so."""
        found = Counter((Path(row["_origin"]).name, row["_position"]) for row in self.landed())
        assert found == self.lines
        ledger = read_ledger(self.home)
        [source] = ledger.sources
        assert source.input == sum(self.lines.values())
        assert ledger.is_balanced

    def _line(self, number: int) -> str:
        if self.dice.random() < 0.03:
            return '{"id": '
        if number and self.dice.random() < 0.1:
            number -= 1
        late = timedelta(hours=1) if self.dice.random() < 0.03 else timedelta()
        order = {
            "id": number,
            "item": ITEMS[number % len(ITEMS)],
            "at": (START + timedelta(seconds=number / 4) - late).isoformat(),
            "price": float(number % 50),
        }
        return json.dumps(order)


def wait_until(true: Callable[[], bool], *, meanwhile: Callable[[], None] | None = None) -> None:
    """Wait for something that must come."""
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "it did not come in time"
        if meanwhile is not None:
            meanwhile()
        time.sleep(0.5)


def _batches(path: Path) -> int:
    return len(list((path / "_delta_log").glob("*.json")))
