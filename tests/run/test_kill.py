from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from tests.shop import APP, Shop, wait_until

from millstream.app import load
from millstream.errors import OvertakenError
from millstream.lake.home import Home
from millstream.run.batch import compare, run_batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KILLS = 20
SEED = int(os.environ.get("MILLSTREAM_SEED", time.time_ns() % 1_000_000))


def drain_and_compare(
    shop: Shop, spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_ORDERS", str(shop.orders))
    app = load(str(APP))
    app.run(home=shop.home.path, once=True, fail_fast=True)
    shop.assert_every_line_landed_once()
    computed = Home.at(place / "batch")
    run_batch(app.graph, spark, shop.home, computed)
    results = compare(app.graph, spark, shop.home, computed)
    assert [(r.name, r.missing, r.extra) for r in results if not r.is_equal] == []
    assert all(r.equal > 0 for r in results)


def kill_one_driver(shop: Shop) -> None:
    enough = shop.batches() + shop.dice.randrange(8, 14)
    shop.put()
    with shop.driver() as driver:
        if shop.dice.random() < 0.75:
            time.sleep(shop.dice.uniform(0, 10))
        else:
            wait_until(lambda: shop.batches() >= enough, meanwhile=shop.put)
            time.sleep(shop.dice.uniform(0, 1))
        assert driver.poll() is None


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", [SEED])
def test_batch_equals_stream_after_twenty_kills_at_random_moments(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    shop = Shop(tmp_path, seed)

    for _ in range(KILLS):
        kill_one_driver(shop)

    drain_and_compare(shop, spark, tmp_path, monkeypatch)


@pytest.mark.spark
@pytest.mark.slow
def test_a_paused_driver_that_was_overtaken_writes_nothing_when_it_wakes(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, seed=1)
    for _ in range(40):
        shop.put()
    with shop.driver() as zombie:
        wait_until(lambda: shop.batches() >= 8)
        zombie.send_signal(signal.SIGSTOP)

        with shop.driver() as refused:
            assert refused.wait(timeout=90) == 1
            assert f"is held by pid {zombie.pid} on " in shop.log.read_text()
        held = shop.batches()
        with shop.driver("--takeover"):
            wait_until(lambda: shop.batches() >= held + 8)
            zombie.send_signal(signal.SIGCONT)
            assert zombie.wait(timeout=90) != 0
            assert OvertakenError.code in shop.log.read_text()

    drain_and_compare(shop, spark, tmp_path, monkeypatch)
