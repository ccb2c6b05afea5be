from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home

TEN, ELEVEN = (datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in (10, 11))
ROWS: list[dict[str, Any]] = [
    {"window": {"start": TEN, "end": ELEVEN}, "best": {"item": "pen", "n": [1, None]}, "ok": True},
    {"window": None, "best": None, "ok": None},
]
FAR = datetime(2013, 1, 2, 0, 0, 30, tzinfo=UTC)


@pytest.fixture
def ask(millstream: Callable[..., Outcome], home: Home) -> Callable[..., Outcome]:
    moment = pa.timestamp("us", tz="UTC")
    window = pa.struct([("start", moment), ("end", moment)])
    best = pa.struct([("item", pa.string()), ("n", pa.list_(pa.int32()))])
    schema = pa.schema([("window", window), ("best", best), ("ok", pa.bool_())])
    write_deltalake(str(home.table("hourly")), pa.Table.from_pylist(ROWS, schema))
    long = [{"window": {"start": TEN, "end": FAR}, "best": None, "ok": None}]
    write_deltalake(str(home.table("longer")), pa.Table.from_pylist(long, schema))
    return lambda *words: millstream("query", *words, "--home", str(home.path))


def test_windows_structs_and_lists_are_readable(ask: Callable[..., Outcome]) -> None:
    outcome = ask("SELECT * FROM hourly ORDER BY ok DESC")

    dash = "\N{EN DASH}"
    assert outcome.out.splitlines()[:3] == [
        "  window                    best                       ok",
        f"  2013-01-01 10:00 {dash} 11:00  {{item: pen, n: [1, NULL]}}  true",
        "  NULL                      NULL                       NULL",
    ]
    longer = ask("SELECT window FROM longer").out.splitlines()
    assert longer[1] == f"  2013-01-01 10:00 {dash} 2013-01-02 00:00:30"


def test_show_tables_lists_them_and_describe_the_columns_of_one(
    ask: Callable[..., Outcome],
) -> None:
    listed = ask("show tables;")
    described = ask("DESCRIBE TABLE Hourly", "--json")
    unknown = ask("DESC hurly")

    assert [line.split() for line in listed.out.splitlines()[:3]] == [
        ["table", "kind"],
        ["by_item", "table"],
        ["hourly", "table"],
    ]
    assert ["orders", "source"] in [line.split() for line in listed.out.splitlines()]
    assert json.loads(described.out)["rows"] == [
        ["window", "struct<start:timestamp,end:timestamp>"],
        ["best", "struct<item:string,n:array<int>>"],
        ["ok", "boolean"],
    ]
    assert unknown.code == 2
    assert "did you mean 'hourly'?" in unknown.err


def test_an_answer_is_written_as_csv(ask: Callable[..., Outcome]) -> None:
    sql = "SELECT * FROM hourly ORDER BY ok DESC"

    printed = ask(sql, "--csv", "-")
    written = ask(sql, "--csv", "answer.csv")

    header, first, second = csv.reader(io.StringIO(printed.out))
    assert header == ["window", "best", "ok"]
    assert json.loads(first[0]) == {"start": TEN.isoformat(), "end": ELEVEN.isoformat()}
    assert first[1:] == ['{"item": "pen", "n": [1, null]}', "true"]
    assert second == ["", "", ""]
    assert written.out == "  2 rows written to answer.csv\n"
    assert Path("answer.csv").read_text() == printed.out


def test_an_answer_is_written_as_parquet_with_its_types(ask: Callable[..., Outcome]) -> None:
    outcome = ask("SELECT * FROM hourly ORDER BY ok DESC", "--parquet", "answer.parquet")

    assert outcome.out == "  2 rows written to answer.parquet\n"
    assert pq.read_table("answer.parquet").to_pylist() == ROWS


def test_a_file_stays_as_it_was_if_the_query_fails(ask: Callable[..., Outcome]) -> None:
    Path("answer.csv").write_text("before\n")

    outcome = ask("SELECT n / 0 FROM by_item", "--csv", "answer.csv")

    assert outcome.refusal[0].startswith("[SQL_FAILED] ")
    assert [file.name for file in Path.cwd().iterdir() if "answer" in file.name] == ["answer.csv"]
    assert Path("answer.csv").read_text() == "before\n"


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["SELECT n, n FROM by_item", "--parquet", "x"], "[ARGUMENT_REFUSED] --parquet cannot be"),
        (["SELECT n FROM by_item", "--csv", "no/x"], "[ARGUMENT_REFUSED] --csv cannot be 'no/x'"),
        (["SELECT n FROM by_item", "--csv", "x", "--json"], "[USAGE] millstream query: it takes"),
        (["SELECT n FROM by_item", "--memory", "lots"], "[ARGUMENT_REFUSED] --memory cannot be"),
        (["SELECT n FROM by_item", "--timeout", "soon"], "[ARGUMENT_REFUSED] --timeout cannot be"),
    ],
)
def test_what_cannot_be_written_is_refused(
    ask: Callable[..., Outcome], words: list[str], refusal: str
) -> None:
    outcome = ask(*words)

    assert outcome.code == 2
    assert outcome.refusal[0].startswith(refusal)
