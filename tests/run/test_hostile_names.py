"""Columns with any name, from a record through landing, tables and stores to look-ups and SQL."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F
from tests.apps import run

import millstream as ms
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.model.data_type import Atom, Field, quoted_name
from millstream.model.schema import Schema
from millstream.operators import dedup
from millstream.operators.columns import quoted
from millstream.sql import query
from millstream.sql.limits import Limits
from millstream.sql.spark_query import SparkEngine

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SEED = 16
MARKS = [
    *(chr(n) for n in range(1, 128) if not chr(n).isalnum()),
    *("é", "ß", "語", "😀", "\x85", "\u2028"),
]
TIME, KEY, PART, NUMBER = '@t.i`m"e\\s', "k.e`y\" '", "p=a/r,t.\n", "nu;m{b}er.%s"
FIXED = (
    TIME,
    KEY,
    PART,
    NUMBER,
    "select",
    "a.b",
    "a",
    "a b",
    "1",
    "👍",
    "from.where",
    "`",
    ".",
    " ",
)


def hostile_names(count: int) -> list[str]:
    """Give names of marks and letters, no two of them the same to Spark."""
    dice = random.Random(SEED)
    names = {name.lower(): name for name in FIXED}
    for mark in MARKS:
        if mark != "_":
            names.setdefault(f"{mark}x", f"{mark}x")
    while len(names) < count:
        name = "".join(dice.choices([*MARKS, "a", "B", "0"], k=dice.randint(1, 8)))
        if not name.startswith("_"):
            names.setdefault(name.lower(), name)
    return list(names.values())


NAMES = hostile_names(90)
OTHERS = [name for name in NAMES if name not in (TIME, KEY, PART, NUMBER)]
SCHEMA = Schema(
    (
        Field(TIME, Atom.TIMESTAMP),
        Field(KEY, Atom.STRING, nullable=False),
        Field(PART, Atom.STRING),
        Field(NUMBER, Atom.BIGINT),
        *(Field(name, Atom.STRING) for name in OTHERS),
    )
)


def record(key: str, part: str, number: int, minute: int) -> dict[str, Any]:
    return {
        TIME: f"2026-05-01T12:{minute:02d}:00Z",
        KEY: key,
        PART: part,
        NUMBER: number,
        **{name: f"{number} of {name}" for name in OTHERS},
    }


RECORDS = [record(f"key {n % 3}", f"part {n % 2}", n - 1, n) for n in range(8)]


def app_of(folder: Path) -> ms.App:
    app = ms.App("hostile")
    app.source(
        name="raw",
        event_time=f"`{TIME.replace('`', '``')}`",
        watermark="1 hour",
    )(lambda: ms.Files(str(folder / "in"), schema=SCHEMA.to_ddl()))
    rule = f"{quoted_name(NUMBER)} >= 0"
    expect = {"the number is not negative": rule}
    app.table(name="kept", partition_by=[PART], expect=expect)(lambda raw: raw)
    app.table(name="once")(lambda raw: dedup(raw, [KEY]))

    @app.table(mode="update", key=[KEY], expect=expect)
    def newest(raw: DataFrame) -> DataFrame:
        return raw.groupBy(quoted(KEY)).agg(F.max(quoted(NUMBER)).alias(NUMBER))

    @app.table(mode="complete")
    def whole(raw: DataFrame) -> DataFrame:
        return raw.groupBy(quoted(PART)).agg(*(F.max(quoted(n)).alias(n) for n in OTHERS))

    @app.table
    def windows(raw: DataFrame) -> DataFrame:
        return raw.groupBy(F.window(quoted(TIME), "1 minute")).count()

    @app.serve(
        to=[
            ms.SQLite(str(folder / "s.db"), key=[KEY]),
            ms.DeltaPath(str(folder / "delta"), key=[KEY]),
        ],
        mode="update",
    )
    def served(raw: DataFrame) -> DataFrame:
        return raw.groupBy(quoted(KEY)).agg(*(F.max(quoted(n)).alias(n) for n in (NUMBER, *OTHERS)))

    app.serve(name="to_json", to=ms.FileSink(str(folder / "json"), "json"))(lambda raw: raw)
    return app


def app_after(folder: Path) -> ms.App:
    """Make an app that reads what the first one has kept."""
    app = ms.App("after")
    app.source(name="table")(lambda: ms.Table(str(folder / "home"), "kept"))
    files = folder / "home" / "tables" / "once" / "*.parquet"
    app.source(name="files")(lambda: ms.Files(str(files), "parquet", schema=SCHEMA.to_ddl()))
    return app


def plain(table: Path, *columns: str) -> list[dict[str, Any]]:
    found = DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    return sorted(({c: row[c] for c in columns} for row in found), key=str)


def test_any_name_is_checked_landed_kept_served_looked_up_and_queried(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, rows in enumerate((RECORDS[:4], RECORDS[4:])):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{number}.json").write_text(text)
    app, home = app_of(tmp_path), tmp_path / "home"
    names = [KEY, PART, NUMBER, *OTHERS]

    assert app.faults == ()
    run(app, home)

    assert read_ledger(Home.at(home)).is_balanced
    as_read = sorted(({n: row[n] for n in names} for row in RECORDS), key=str)
    assert plain(home / "tables" / "raw", *names) == as_read
    kept, aside = ([r for r in as_read if (r[NUMBER] >= 0) is right] for right in (True, False))
    assert plain(home / "tables" / "kept", *names) == kept
    assert plain(Home.at(home).quarantine("kept"), *names) == aside
    assert plain(home / "tables" / "newest", KEY, NUMBER) == [
        {KEY: f"key {n}", NUMBER: most} for n, most in ((0, 5), (1, 6), (2, 4))
    ]
    _check_queries(app, spark, home, names, kept)
    _check_stores(app, tmp_path)
    after = app_after(tmp_path)
    assert after.faults == ()
    run(after, tmp_path / "after")
    assert plain(tmp_path / "after" / "tables" / "table", *names) == kept
    once = plain(home / "tables" / "once", *names)
    assert len(once) == 3
    assert plain(tmp_path / "after" / "tables" / "files", *names) == once


def _check_stores(app: ms.App, folder: Path) -> None:
    wanted: dict[str, dict[str, Any]] = {}
    for row in RECORDS:
        before = wanted.setdefault(row[KEY], row)
        wanted[row[KEY]] = {n: max(before[n], row[n]) for n in (KEY, NUMBER, *OTHERS)}
    for key, row in wanted.items():
        assert app.get("served", **{KEY: key}) == row
    in_delta = DeltaTable(str(folder / "delta")).to_pyarrow_table().to_pylist()
    assert sorted(in_delta, key=str) == sorted(wanted.values(), key=str)
    texts = [file.read_text() for file in (folder / "json").glob("*.json")]
    written = [json.loads(line) for text in texts for line in text.split("\n") if line]
    numbers = sorted(row[NUMBER] for row in written)
    assert (numbers, set(written[0])) == (list(range(-1, 7)), {TIME, KEY, PART, NUMBER, *OTHERS})


def _check_queries(
    app: ms.App, spark: SparkSession, home: Path, names: list[str], kept: list[dict[str, Any]]
) -> None:
    text = f"SELECT {', '.join(map(quoted_name, names))} FROM kept"
    columns, rows = query(Home.at(home), text)
    assert list(columns) == names
    assert sorted((dict(zip(names, row, strict=True)) for row in rows), key=str) == kept
    engine = SparkEngine.open(spark, Home.at(home), Limits())
    rows = engine.run(text, lambda answer: [row for some in answer.batches() for row in some])
    assert sorted((dict(zip(names, row, strict=True)) for row in rows), key=str) == kept
