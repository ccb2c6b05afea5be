"""Every table against DuckDB, which computes it from the finished data by SQL of its own."""

from __future__ import annotations

import json
import runpy
import sqlite3
import zipfile
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from millstream.lake.home import Home
from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.testing import Script

FLIGHTS = Path(__file__).parent
APP = str(FLIGHTS / "app.py")
REPLAY = runpy.run_path(str(FLIGHTS / "replay.py"))
arrivals, days, package, write = (REPLAY[n] for n in ("arrivals", "days", "package", "write"))

STORM = days(date(2013, 2, 7), 3)
"""A blizzard: on 8 and 9 February 2013 more than half of the flights were cancelled."""

CLOSING = {
    "scheduled": "2014-03-01T12:00:00Z",
    "at": "2014-03-01T12:00:00Z",
    "flight": 1,
    "delay": 60,
    **dict.fromkeys(("carrier", "tail", "origin", "dest"), "closing"),
}
"""A later message for every source: with it, all that happened before is final."""

SOURCES = ("departures", "arrivals", "weather")
TABLES = (
    *("departed", "arrived", "hourly", "flown", "in_weather", "rotations", "knock_on"),
    *("worst", "by_airline", "stranded"),
)


def finished(dates: Sequence[date], folder: Path) -> duckdb.DuckDBPyConnection:
    """Compute what is expected for some days from the files of the package."""
    with zipfile.ZipFile(package() / "flights.csv.zip") as packed:
        packed.extract("flights.csv", folder)
    db = duckdb.connect()
    db.execute("SET VARIABLE flights = ?", [str(folder / "flights.csv")])
    db.execute("SET VARIABLE data = ?", [str(package())])
    db.execute("SET VARIABLE first = ?::DATE", [dates[0]])
    db.execute("SET VARIABLE last = ?::DATE", [dates[-1]])
    db.execute((FLIGHTS / "expected.sql").read_text())
    return db


def stored(home: Home) -> dict[str, pa.Table]:
    """Read the tables of a home, with windows as two columns."""
    return {name: DeltaTable(str(home.table(name))).to_pyarrow_table().flatten() for name in TABLES}


def served(database: Path) -> pa.Table:
    """Read what is served."""
    with sqlite3.connect(database) as db:
        db.row_factory = sqlite3.Row
        found = [dict(row) for row in db.execute("SELECT * FROM aircraft")]
    return pa.Table.from_pylist([{**r, "at": datetime.fromisoformat(r["at"])} for r in found])


def differences(
    expected: duckdb.DuckDBPyConnection, tables: dict[str, pa.Table]
) -> dict[str, list[list[tuple[object, ...]]]]:
    """Return for each table that differs the first rows that it lacks, and those too many."""
    found = {}
    for name, rows in tables.items():
        whose = next(c for c in ("carrier", "tail", "origin") if c in rows.column_names)
        expected.register("stored", rows.filter(pc.field(whose) != CLOSING[whose]))
        lacks = expected.execute(f"FROM {name} EXCEPT ALL FROM stored").fetchmany(3)
        has = expected.execute(f"FROM stored EXCEPT ALL FROM {name}").fetchmany(3)
        if lacks or has:
            found[name] = [lacks, has]
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_table_is_that_of_duckdb_out_of_order_and_after_a_crash(
    folder: Path, stream: Callable[..., Script]
) -> None:
    arrived, home = arrivals(STORM, seed=7), Home.at(folder / "home")

    with stream(load(APP), home=home.path) as s:
        for number, (_, source, message) in enumerate(arrived):
            if number == len(arrived) // 2:
                s.crash(after="sink_commit", query="flown")
                s.restart()
            s.send(source, json.dumps(message))
        for source in SOURCES:
            s.send(source, json.dumps(CLOSING))
        s.drain()

        expected = finished(STORM, folder)
        rows = stored(home)
        assert differences(expected, {**rows, "aircraft": served(folder / "flights.db")}) == {}
        assert min(table.num_rows for table in rows.values()) > 1
        assert {v for name in SOURCES for v in s.verdicts(name)} == {"ok"}
        s.assert_consistent()


def test_messages_are_the_same_for_the_same_seed_and_late_within_the_watermark() -> None:
    [source] = (s for s in load(APP).graph.sources if s.name == "departures")
    assert source.watermark == "2 hours"

    one, other = (arrivals(STORM[:1], seed) for seed in (3, 4))

    assert one == arrivals(STORM[:1], seed=3) != other
    came = [(when, datetime.fromisoformat(message["at"])) for when, _, message in one]
    happened = [at for _, at in came]
    assert happened != sorted(happened)
    assert max(when - at for when, at in came) <= timedelta(hours=2)
    texts = [json.dumps(message) for _, _, message in one]
    assert len(set(texts)) < len(texts)


def test_files_hold_every_message_in_the_order_of_arrival(folder: Path) -> None:
    write(folder / "data", STORM[:1], seed=3)

    for name in SOURCES:
        files = sorted((folder / "data" / name).iterdir(), key=lambda file: file.stat().st_mtime)
        assert [file.stem for file in files] == ["2013-02-07", "2013-02-08"]
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert lines == [m for _, source, m in arrivals(STORM[:1], seed=3) if source == name]


def test_an_arrival_in_honolulu_is_by_the_clock_of_honolulu() -> None:
    messages = (m for _, source, m in arrivals(STORM[:1], seed=7) if source == "arrivals")
    arrived_at = {(m["carrier"], m["flight"]): m["at"] for m in messages}

    assert arrived_at["HA", 51] == "2013-02-08T01:28:00+00:00"
