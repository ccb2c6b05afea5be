"""Answers made from rows that change, served to real stores: every crash point, deletes, reset."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.systems.stores import rows_in

import millstream as ms
from millstream.errors import StoreAheadError
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.testing import Script

pytestmark = [pytest.mark.spark]
MANY = 3
DEATHS = ("store_commit", "batch_staged", "sink_commit", "store_written")


def shop(few: list[Any], everything: list[Any]) -> ms.App:
    """Sales counted by item; those sold little are one answer, all of them another."""
    app = ms.App("shop")
    app.source(name="orders")(lambda: ms.Memory("item STRING"))

    @app.table(mode="update", key=["item"])
    def sold(orders: DataFrame) -> DataFrame:
        return orders.groupBy("item").agg(F.count("*").alias("n"))

    @app.serve(to=few, mode="update")
    def little(sold: DataFrame) -> DataFrame:
        return sold.where(F.col("n") < MANY)

    @app.serve(to=everything, mode="complete")
    def total(sold: DataFrame) -> DataFrame:
        return sold.agg(F.sum("n").alias("n"), F.count("*").alias("items"))

    return app


def test_changes_reach_every_store_once_and_what_is_gone_goes_wherever_the_driver_dies(
    stream: Callable[..., Script], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ms.SQLite(str(tmp_path / "a.db"), key="item")
    second = ms.DeltaPath(str(tmp_path / "delta"), key="item", delete_when="n = 1")
    whole = ms.SQLite(str(tmp_path / "b.db"), table="total")
    home, sent = tmp_path / "home", ["tea", "rye", "tea", "tea"]
    with stream(shop([first, second], [whole, ms.Console()]), home=home) as s:
        for item, point in zip(sent, DEATHS, strict=True):
            s.send("orders", item=item)
            s.crash(after=point, query="little")
            s.restart()
        for item in ("rye", "ale"):
            sent.append(item)
            s.send("orders", item=item)
        s.drain()
        ledger = read_ledger(Home.at(home))

    sold = Counter(sent)
    little = {item: n for item, n in sold.items() if n < MANY}
    assert {row["item"]: row["n"] for row in rows_in(first, "little")} == little
    assert {row["item"]: row["n"] for row in rows_in(second)} == {
        item: n for item, n in little.items() if n > 1
    }
    assert "tea" not in little, "something has to go"
    assert rows_in(whole) == [{"n": len(sent), "items": len(sold)}]
    assert f"|{len(sent):<3}|{len(sold):<5}|" in capsys.readouterr().err
    assert ledger.is_balanced
    assert [(e.name, e.input == e.written > 0) for e in ledger.serves] == [
        ("little", True), ("little", True), ("total", True),
    ]  # fmt: skip
    shutil.rmtree(home / "changes" / "little")
    with pytest.raises(StoreAheadError, match="of another checkpoint; this one knows none"):
        stream(shop([first, second], [whole]), home=home).__enter__().drain()
