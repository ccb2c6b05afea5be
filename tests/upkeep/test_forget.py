from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.faults import raises
from tests.lake.test_delta import files, rows_of
from tests.systems.test_table_source import committed

from millstream.checkpoint import CheckpointLog
from millstream.checkpoint.checksum import read_seal, write_sealed
from millstream.cli.interrupt import Interrupts
from millstream.cli.program import run_command
from millstream.lake.condition import OwnRows
from millstream.lake.home import Home
from millstream.lake.log import Facts, facts_of
from millstream.lake.stored import StoredFile
from millstream.testing.hook import Hook
from millstream.upkeep.forget import _own

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_files_of_other_days_are_not_read(tmp_path: Path) -> None:
    partition = {"_verdict": "ok", "_day": "2026-05-01"}
    file = StoredFile("not_there.parquet", 1, 1, 0, partition, None)

    assert _own(tmp_path, file, OwnRows({"_day": "2026-05-02", "k": "ann"})) == 0
    with pytest.raises(FileNotFoundError):
        _own(tmp_path, file, OwnRows({"_day": "2026-05-01", "k": "ann"}))


CANARY = "canary-4711"
TABLES = """
import millstream as ms

app = ms.App("shop")

@app.source
def clean() -> ms.Files:
    return ms.Files("nowhere", schema="k STRING, n BIGINT")

app.sql("copied", "SELECT * FROM clean")
"""
APP = """\
import millstream as ms

app = ms.App("shop", home={home!r})


@app.source(event_time="at", watermark="1 minute", expect={{"known": "price < 1000"}})
def orders():
    return ms.Files({folder!r}, schema="user STRING, at TIMESTAMP, price BIGINT")


@app.table(expect={{"paid": "price > 0"}})
def clean(orders):
    return orders.select("user", "at", "price")


@app.table(mode="update", key=["user"])
def newest(clean):
    return clean.groupBy("user").agg({{"price": "max"}}).withColumnRenamed("max(price)", "dear")


@app.table(mode="complete")
def dearest(newest):
    return newest.where("dear > 5")


@app.alert(to=[ms.Webhook({hook!r})], key=["user"])
def seen(clean):
    return clean


@app.serve(to=ms.SQLite({store!r}, table="newest", key="user"), mode="update")
def served(newest):
    return newest
"""


def order(user: str, minute: int, price: object) -> str:
    return json.dumps({"user": user, "at": f"2026-01-01 12:{minute:02d}:00", "price": price})


def contents(home: Path) -> dict[str, bytes]:
    """Read every file of a home; of Parquet, what is in it as well."""
    found = {}
    for file in home.rglob("*"):
        if file.is_file():
            found[str(file.relative_to(home))] = file.read_bytes()
        if file.is_file() and file.suffix == ".parquet":
            text = str(pq.ParquetFile(file).read().to_pylist())
            found[str(file.relative_to(home)) + " rows"] = text.encode()
    return found


def millstream(*typed: str) -> int:
    return run_command(typed, Interrupts())


@pytest.mark.slow
def test_no_byte_of_a_value_is_left_and_the_app_goes_on(  # noqa: PLR0915
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    home, folder, app = tmp_path / "home", tmp_path / "orders", str(tmp_path / "app.py")
    folder.mkdir()
    with Hook() as hook:
        places = {"home": str(home), "folder": str(folder), "store": str(tmp_path / "s.db")}
        (tmp_path / "app.py").write_text(APP.format(hook=hook.address, **places))
        for number, price in enumerate((3, -3, 5000, "torn")):
            lines = order(CANARY, number, price), order("ann", number, 7 + number)
            (folder / f"{number}.json").write_text("\n".join(lines) + "\n")
            assert millstream("run", app, "--once") == 0
        before = [name for name, text in contents(home).items() if CANARY.encode() in text]
        assert any("_delta_log" in name for name in before)
        assert any("deliveries.db" in name for name in before)

        condition = ["--where", f"user = '{CANARY}'"]
        assert millstream("forget", app, "clean", *condition) == 2
        assert "this would erase" in capsys.readouterr().err
        assert millstream("forget", app, "clean", *condition, "--yes", "--json") == 0
        receipt: dict[str, Any] = json.loads(capsys.readouterr().out)
        left = [name for name, text in contents(home).items() if CANARY.encode() in text]
        in_state = [name for name in left if name.startswith("checkpoints/newest/state")]
        assert left == in_state
        assert sorted(receipt["found"]) == sorted(n for n in left if not n.endswith(" rows"))
        assert receipt["rows"] == {
            "clean": 1, "clean__quarantine": 1, "newest": 1, "orders": 4, "seen": 1,
        }  # fmt: skip
        assert (receipt["notices"], receipt["states"]) == (1, ["newest"])
        assert receipt["served"] == ["served"]

        (folder / "later.json").write_text(order("bob", 30, 70) + "\n")
        assert millstream("run", app, "--once") == 0
        capsys.readouterr()
        query = "SELECT user, count(*) AS n FROM clean GROUP BY user ORDER BY user"
        assert millstream("query", app, query, "--json") == 0
        assert json.loads(capsys.readouterr().out)["rows"] == [["ann", 4], ["bob", 1]]
        sent = " ".join(json.dumps(request.body) for request in hook.received)
        assert "ann" in sent
        assert "bob" in sent


ROWS = pa.RecordBatch.from_pylist(
    [
        {"user": "ann", "n": 1, "_raw": None},
        {"user": "bob", "n": 1, "_raw": None},
        {"user": None, "n": None, "_raw": b'{"user": "ann", "n": "1"'},
        {"user": "ann", "n": None, "_raw": None},
    ]
)


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("user = 'ann'", [1]),
        ("user='ann' AND n=1", [1, 3]),
        ("n = 1", [3]),
        ("`user` = 'o''brien'", [0, 1, 2, 3]),
        ("n = 'x'", [0, 1, 2, 3]),
        ("other = 1", [0, 1, 3]),
        ("part = 'a' AND user = 'bob'", [0, 2, 3]),
        ("part = 'b' AND user = 'bob'", [0, 1, 2, 3]),
    ],
)
def test_rows_that_equal_the_values_are_found_and_no_others(
    condition: str, left: list[int]
) -> None:
    rows = ROWS.append_column("at", pa.array(range(4)))

    kept = OwnRows.parse(condition).others(rows, {"part": "a"})

    assert kept.column("at").to_pylist() == left


def test_without_spark_rows_and_versions_go_and_streams_read_on_behind_them(  # noqa: PLR0915
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home.at(tmp_path / "home")
    app = str(tmp_path / "app.py")
    (tmp_path / "app.py").write_text(TABLES)
    table = committed(home.path, "clean", "k STRING, n BIGINT")
    for batch in range(1, 6):
        rows: list[tuple[str | None, int]] = [(CANARY, batch), ("ann", batch)]
        table.append(files(tmp_path / "s", rows), Facts("q", batch=batch))
    log = CheckpointLog(home.checkpoint("copied"))
    id_ = DeltaTable(str(table.path)).metadata().id

    def read_to(batch: int, version: int) -> None:
        end = {"reservoirId": str(id_), "reservoirVersion": version + 1, "index": -1}
        known = {"batchWatermarkMs": 0, "batchTimestampMs": 0}
        text = f"v1\n{json.dumps(known)}\n{json.dumps(end)}"
        write_sealed(log.path / "offsets" / str(batch), text)
        write_sealed(log.path / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')

    read_to(0, table.version - 1)
    command = ["forget", app, "clean", "--where", f"k = '{CANARY}'", "--home", str(home.path)]
    assert millstream(*command, "--yes") == 2
    assert "FORGET_READERS" in capsys.readouterr().err
    read_to(1, table.version)
    assert millstream(*command) == 2
    assert "FORGET_NOT_AGREED" in "".join(capsys.readouterr())
    assert millstream(*command, "--yes", "--json") == 0

    receipt = json.loads(capsys.readouterr().out)
    assert (receipt["rows"], receipt["is_done"]) == ({"clean": 5}, True)
    assert not [name for name, text in contents(home.path).items() if CANARY.encode() in text]
    assert [row[0] for row in rows_of(table.path)] == ["ann"] * 5
    assert facts_of(table.path).batch == 5
    latest = DeltaTable(str(table.path)).version()
    assert log.offsets(1).versions == {str(id_): latest}
    assert read_seal(log.path / "offsets" / "1") == "whole"
    [kept] = (home.path / "receipts").iterdir()
    assert json.loads(kept.read_text())["condition"] == receipt["condition"]


@pytest.mark.parametrize("condition", ["", "user", "user > 3", "user = ''", "a = 1 OR b = 2"])
def test_any_other_condition_is_refused(condition: str) -> None:
    with raises("FORGET_CONDITION"):
        OwnRows.parse(condition)
