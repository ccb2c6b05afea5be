from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises
from tests.lake.test_delta import files, rows_of
from tests.systems.test_table_source import committed
from tests.upkeep.test_forget import millstream

from millstream.alert.deliveries import Deliveries
from millstream.lake.durable import write_durably
from millstream.lake.home import Home
from millstream.lake.log import Facts, facts_of
from millstream.upkeep.backup import copy_snapshot, restore, take_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

APP = """\
import millstream as ms

app = ms.App("shop", home={home!r})


@app.source
def orders():
    return ms.Files({folder!r}, schema="user STRING, price BIGINT")


@app.table(mode="update", key=["user"])
def spent(orders):
    return orders.groupBy("user").agg({{"price": "sum"}}).withColumnRenamed("sum(price)", "spent")


@app.serve(to=ms.SQLite({store!r}, table="spent", key="user"), mode="update")
def served(spent):
    return spent
"""


class Batches:
    """A query that commits batches as fast as it can, but none while it is paused."""

    def __init__(self, home: Home) -> None:
        self._lock = threading.Lock()
        self.table = committed(home.path, "clean", "k STRING, n BIGINT")
        self._home, self.halt = home, threading.Event()
        self.begun = threading.Event()

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self._lock:
            yield

    def write(self) -> None:
        for batch in range(1, 10_000):
            with self._lock:
                # The checkpoint comes first: a copy in between would not fit.
                write_durably(self._home.path / "planned", str(batch))
                rows: list[tuple[str | None, int]] = [("a", batch)]
                staged = files(self._home.path.parent / "s", rows)
                self.table.append(staged, Facts("q", batch=batch))
            self.begun.set()
            if self.halt.is_set():
                return


def test_a_snapshot_is_of_one_moment_between_batches(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    batches = Batches(home)
    query: Any = type("Supervised", (), {"running": batches})
    thread = threading.Thread(target=batches.write)
    thread.start()
    batches.begun.wait()
    try:
        for number in range(5):
            copy_snapshot(take_snapshot(home, [query]), tmp_path / str(number))
    finally:
        batches.halt.set()
        thread.join()

    for number in range(5):
        copied = Home.at(tmp_path / str(number))
        batch = int((copied.path / "planned").read_text())
        assert facts_of(copied.table("clean")).batch == batch
        assert sorted(n for _, n in rows_of(copied.table("clean"))) == [*range(1, batch + 1)]
    assert not (home.maintenance / "snapshot").exists()


def test_the_deliveries_are_copied_while_they_are_written(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    committed(home.path, "clean")
    deliveries = Deliveries(home.alerts, epoch=1)
    try:
        copy_snapshot(take_snapshot(home), tmp_path / "copy")
    finally:
        deliveries.close()

    assert [file.name for file in (tmp_path / "copy/alerts").iterdir()] == ["deliveries.db"]
    with sqlite3.connect(tmp_path / "copy/alerts/deliveries.db") as copied:
        assert copied.execute("SELECT epoch FROM fence").fetchall() == [(1,)]
    copied.close()


def test_nothing_is_written_over_and_no_other_folder_restored(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    committed(home.path, "clean")
    copy_snapshot(take_snapshot(home), tmp_path / "copy")

    with raises("BACKUP_TAKEN"):
        copy_snapshot(take_snapshot(home), tmp_path / "copy")
    with raises("BACKUP_TAKEN"):
        restore(tmp_path / "copy", home)
    with raises("NO_BACKUP"):
        restore(tmp_path, Home.at(tmp_path / "new"))
    assert restore(tmp_path / "copy", Home.at(tmp_path / "new")) > 0
    assert Home.at(tmp_path / "new").tables == ("clean",)


@pytest.mark.slow
def test_a_restored_home_goes_on_and_is_refused_by_a_store_that_is_newer(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    home, folder, store = tmp_path / "home", tmp_path / "orders", tmp_path / "s.db"
    folder.mkdir()
    app = str(tmp_path / "app.py")
    places = {"home": str(home), "folder": str(folder), "store": str(store)}
    (tmp_path / "app.py").write_text(APP.format(**places))

    def land(price: int) -> int:
        order = json.dumps({"user": "ann", "price": price})
        (folder / f"{price}.json").write_text(order + "\n")
        return millstream("run", app, "--once")

    def spent() -> object:
        capsys.readouterr()
        assert millstream("query", app, "SELECT spent FROM spent", "--json") == 0
        return json.loads(capsys.readouterr().out)["rows"]

    assert land(1) == 0
    assert millstream("backup", app, "--into", str(tmp_path / "early")) == 0
    assert land(2) == 0
    assert millstream("backup", app, "--into", str(tmp_path / "late")) == 0
    home.rename(tmp_path / "lost")

    assert millstream("restore", app, "--from", str(tmp_path / "early")) == 0
    capsys.readouterr()
    assert land(3) == 3
    assert "STORE_AHEAD" in capsys.readouterr().err

    home.rename(tmp_path / "refused")
    assert millstream("restore", app, "--from", str(tmp_path / "late")) == 0
    assert land(4) == 0
    assert spent() == [[10]]
