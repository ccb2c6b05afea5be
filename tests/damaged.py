"""A small shop that has run, for its checkpoints to be damaged."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.damage import Finished

from millstream.lake.home import Home
from millstream.loading import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = Path(__file__).parent / "resources" / "shop.py"
START = datetime(2026, 11, 1, tzinfo=UTC)
ITEMS = ("pen", "ink", "pad")
FILES, ROWS = 62, 4
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def finished(place: Path, spark: SparkSession, *, files: int = FILES) -> Finished:
    """Run a shop: state in snapshots, then in changes; two files are left to be read."""
    orders = place / "orders"
    orders.mkdir()
    os.environ["SHOP_ORDERS"] = str(orders)
    app, home = load(str(APP)), Home.at(place / "home")
    for number in range(3):
        put(orders, number)
    spark.conf.set(CHANGELOG, "false")
    try:
        app.run(home=home.path, once=True, fail_fast=True)
    finally:
        spark.conf.set(CHANGELOG, "true")
    for start, end in ((3, files - 5), (max(files - 5, 3), files)):
        for number in range(start, end):
            put(orders, number)
        if start < end:
            app.run(home=home.path, once=True, fail_fast=True)
    for number in range(files, files + 2):
        put(orders, number)
    return Finished(app, home)


def put(orders: Path, number: int) -> None:
    """Add a file of orders: one of an earlier file once more, one malformed, one free of charge."""
    lines = []
    for line in range(ROWS):
        n = number * ROWS + line
        n = n - ROWS if line == 1 and number else n
        at = (START + timedelta(seconds=7 * n)).isoformat()
        order = {"id": n, "item": ITEMS[n % 3], "at": at, "price": float(n % 5)}
        lines.append('{"id": ' if line == 2 and number % 5 == 0 else json.dumps(order))
    (orders / f"{number:05d}.json").write_text("".join(line + "\n" for line in lines))
    stamp = START.timestamp() + number
    os.utime(orders / f"{number:05d}.json", (stamp, stamp))
