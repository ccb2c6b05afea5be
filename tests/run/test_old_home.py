"""Homes that an earlier version wrote are gone on from."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.old_home import example, send, unpack

from millstream.lake.failed_queries import read_troubles
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.trial.batch import compare, run_batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["etl", "serving", "presence"])
def test_a_home_of_an_earlier_version_is_continued_and_balanced(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    unpack(name, tmp_path)
    home, app = Home.at(tmp_path / "home"), example(name, tmp_path)
    before = read_ledger(home).sources[0].input

    for part in (0, 1):
        send(name, tmp_path, part)
    sent = send(name, tmp_path, 2)
    app.run(once=True, home=home.path)

    ledger = read_ledger(home)
    [source] = ledger.sources
    assert (ledger.is_balanced, read_troubles(home)) == (True, {})
    assert before > 1200
    assert source.input == before + sent
    if name == "serving":
        assert _views(tmp_path) == source.verdicts["ok"]
    else:
        computed = Home.at(tmp_path / "computed")
        run_batch(app.graph, spark, home, computed)
        assert [c for c in compare(app.graph, spark, home, computed) if not c.is_equal] == []


def _views(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "visits.db")) as db:
        [(views,)] = db.execute("SELECT sum(views) FROM by_page")
    return int(views)
