from __future__ import annotations

import json
import os
import time
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.apps import app_of, rows, run
from tests.faults import raises

from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.landing.land import Landing
from millstream.model.codec import CsvOptions
from millstream.systems.files.source import Files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, name STRING"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def small_partitions(spark: SparkSession) -> Iterator[None]:
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    for name in names:
        spark.conf.set(name, "256")
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))


def lines(*records: dict[str, Any] | str) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def test_json_lines_land_with_the_file_and_line_they_came_from(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    good = folder / "a.json"
    good.write_text(lines({"id": 1, "name": "x"}, '{"id": 2, ', {"id": 3.5}, {"id": 4}))
    (folder / "empty.json").write_text("")

    run(app_of(Files(str(folder), schema=SCHEMA)), home)

    assert rows(home, "readings", "_position", "id", "name", "_verdict", "_reason") == [
        (1, 1, "x", "ok", None),
        (2, None, None, "malformed", "not JSON: input data was truncated"),
        (3, None, None, "malformed", "expected int, got float, at $.id"),
        (4, 4, None, "ok", None),
    ]
    assert {row[0] for row in rows(home, "readings", "_origin")} == {str(good)}


def test_csv_is_read_by_its_header_and_its_quotes(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    (folder / "a.csv").write_text('id,name\n1,"a, ""b"""\n2,\nx,c\n3,d,e\n')
    (folder / "b.csv").write_text("name,age,id\nq,9,7\n")
    (folder / "c.csv").write_text("nom,no\nq,7\n")
    source = Files(str(folder), format="csv", schema=SCHEMA, csv=CsvOptions(header=True))
    split = spark.conf.get("spark.sql.files.maxPartitionBytes")

    run(app_of(source), home)

    wrong = "header says nom, no; the schema says id, name"
    assert rows(home, "readings", "_position", "id", "name", "_reason") == [
        (1, None, None, wrong),
        (2, 1, 'a, "b"', None),
        (2, 7, "q", None),
        (2, None, None, wrong),
        (3, 2, None, None),
        (4, None, None, "expected int, got 'x', in column 'id'"),
        (5, None, None, "expected 2 columns, got 3"),
    ]
    assert spark.conf.get("spark.sql.files.maxPartitionBytes") == split


def test_a_header_is_found_in_every_file_however_files_are_split(
    spark: SparkSession, small_partitions: None, folder: Path, home: Path
) -> None:
    for name in "ab":
        numbered = "".join(f"{n},{name * 20}\n" for n in range(50))
        (folder / f"{name}.csv").write_text("id,name\n" + numbered)
    source = Files(str(folder), format="csv", schema=SCHEMA, csv=CsvOptions(header=True))

    run(app_of(source), home)

    landed = rows(home, "readings", "name", "id", "_position", "_verdict")
    assert sorted(landed) == [(name * 20, n, n + 2, "ok") for name in ("a", "b") for n in range(50)]


def test_without_multiline_the_pieces_of_a_quoted_newline_are_malformed(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    (folder / "a.csv").write_text('1,"first\n2,second"\n3,third\n')

    run(app_of(Files(str(folder), format="csv", schema=SCHEMA)), home)

    hint = "; if fields contain newlines, set multiline=True"
    stray = "a quote inside an unquoted field, in column 'name'"
    assert rows(home, "readings", "_position", "id", "name", "_reason") == [
        (1, None, None, f"not CSV: a quoted field is not closed, in column 'name'{hint}"),
        (2, None, None, f"not CSV: {stray}; quote the field and double the quote{hint}"),
        (3, 3, "third", None),
    ]


def test_with_multiline_a_quoted_field_keeps_its_newlines_and_the_line_where_it_begins(
    spark: SparkSession, small_partitions: None, folder: Path, home: Path
) -> None:
    file = folder / "a.csv"
    text = 'id,name\r\n1,"first\r\n2,second"\r\n3,"a\rb\n\nc"\r\n\r\nx,"d\ne"\r\n'
    last = "".join(f'{n},"{"z" * 40}\n{n}"\n' for n in range(10, 60))
    file.write_bytes(("\ufeff" + text + last).encode())
    (folder / "b.csv").write_text('id,name\n7,"open\n8,x\n')
    options = CsvOptions(header=True, multiline=True)

    run(app_of(Files(str(folder), format="csv", schema=SCHEMA, csv=options)), home)

    landed = rows(home, "readings", "_origin", "_position", "id", "name", "_raw", "_reason")
    first = sorted((row[1:] for row in landed if row[0] == str(file)), key=itemgetter(0))
    assert [row[:3] for row in first if row[-1] is None] == [
        *[(2, 1, "first\r\n2,second"), (4, 3, "a\rb\n\nc")],
        *[(10 + 2 * (n - 10), n, f"{'z' * 40}\n{n}") for n in range(10, 60)],
    ]
    assert [row for row in first if row[-1] is not None] == [
        (8, None, None, b'x,"d\ne"\r', "expected int, got 'x', in column 'id'"),
    ]
    never = "not CSV: the quoted field that line 2 opens is not closed before the end of the file"
    assert [row[1:] for row in landed if row[0] != str(file)] == [
        (2, None, None, b'7,"open', never),
        (3, None, None, b"8,x", never),
    ]
    [entry] = read_ledger(Home.at(home)).sources
    assert (entry.input, entry.is_balanced) == (56, True)


def test_a_live_source_reads_quoted_newlines(spark: SparkSession, folder: Path) -> None:
    for name in "ab":
        (folder / f"{name}.csv").write_text(f'1,"{name}\n2"\n3,"open\n')
    connector = Files(str(folder), format="csv", schema=SCHEMA, csv=CsvOptions(multiline=True))
    landing = Landing.of(app_of(connector, live=True).graph.sources[0])

    read = landing.live(connector.sample(spark, 100)).collect()

    assert sorted(tuple(row) for row in read) == [(1, "a\n2"), (1, "b\n2")]


def test_multiline_is_refused_where_it_does_nothing() -> None:
    multiline = CsvOptions(multiline=True)
    as_json = Files(".", schema=SCHEMA, csv=multiline)
    own = Files(".", format="csv", schema=SCHEMA, csv=multiline, options={"lineSep": "|"})

    assert [(f.code, f.what, f.fix) for c in (as_json, own) for f in app_of(c).faults] == [
        (
            "OPTION_UNUSED",
            "source 'readings' has csv.multiline=True, which format='json' does not use",
            "set format='csv', or leave csv.multiline out",
        ),
        (
            "OPTION_UNUSED",
            "source 'readings' has options.lineSep='|', which csv.multiline=True does not use",
            "leave options.lineSep out: lines end with LF or CRLF",
        ),
    ]


def test_text_lands_line_by_line(spark: SparkSession, folder: Path, home: Path) -> None:
    (folder / "a.txt").write_text("one\n\nthree\n", encoding="utf-8")
    (folder / "b.txt").write_bytes(b"\xff\xfe broken\n")

    run(app_of(Files(str(folder), format="text")), home)

    assert rows(home, "readings", "_position", "value", "_verdict", "_reason") == [
        (1, "one", "ok", None),
        (1, None, "malformed", "not UTF-8: invalid start byte (byte 0)"),
        (3, "three", "ok", None),
    ]


def test_parquet_rows_land_as_they_are(spark: SparkSession, folder: Path, home: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", None]}), folder / "a.parquet")
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])

    run(app_of(Files(str(folder), format="parquet", schema=schema)), home)

    assert rows(home, "readings", "id", "name", "_position", "_verdict") == [
        (1, "a", 0, "ok"),
        (2, None, 1, "ok"),
    ]


def test_a_record_of_ten_megabytes_lands(spark: SparkSession, folder: Path, home: Path) -> None:
    name = "x" * 10_000_000
    (folder / "a.json").write_text(lines({"id": 1, "name": name}, {"id": 2, "name": "y"}))

    run(app_of(Files(str(folder), schema=SCHEMA)), home)

    assert [(row[0], len(row[1])) for row in rows(home, "readings", "id", "name")] == [
        (1, 10_000_000),
        (2, 1),
    ]


def test_a_file_replaced_or_truncated_after_landing_is_reported_and_changes_nothing(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    for name in ("kept", "replaced", "truncated"):
        (folder / f"{name}.json").write_text(lines({"id": 1, "name": name}))
    app = app_of(Files(str(folder), schema=SCHEMA))
    assert [event.kind for event in run(app, home)] == ["started", "finished"]
    before = rows(home, "readings")

    (folder / "replaced.json").write_text(lines({"id": 2, "name": "other"}))
    (folder / "truncated.json").write_text("")
    for name in ("replaced", "truncated"):
        os.utime(folder / f"{name}.json", (time.time() + 60, time.time() + 60))
    events = run(app, home)

    assert rows(home, "readings") == before
    reported = [(event.query, event.detail) for event in events if event.kind == "file_changed"]
    assert sorted(reported) == [
        ("readings", str(folder / "replaced.json")),
        ("readings", str(folder / "truncated.json")),
    ]


def test_a_limit_on_files_gives_several_batches(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    for n in range(3):
        (folder / f"{n}.json").write_text(lines({"id": n}))
        os.utime(folder / f"{n}.json", (1000 + n, 1000 + n))

    run(app_of(Files(str(folder), schema=SCHEMA, options={"maxFilesPerTrigger": 1})), home)

    assert rows(home, "readings", "id", "_batch") == [(0, 0), (1, 1), (2, 2)]


def test_a_file_with_an_old_date_that_arrives_late_is_read(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    app = app_of(Files(str(folder), schema=SCHEMA))
    (folder / "new.json").write_text(lines({"id": 1}))
    run(app, home)

    (folder / "old.json").write_text(lines({"id": 2}))
    os.utime(folder / "old.json", (1000, 1000))
    run(app, home)

    assert rows(home, "readings", "id") == [(1,), (2,)]


@pytest.mark.parametrize("name", ["two words", "zürich", "day=1", "100%25", "a+b", "a[1]{b}"])
def test_folders_may_have_odd_names(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "data"
    folder.mkdir(parents=True)
    (folder / "a b%20.json").write_text(lines({"id": 1}))
    home = tmp_path / ("home" if "[" in name else name.replace("%25", "% "))

    events = run(app_of(Files(str(folder), schema=SCHEMA)), home)

    [(number, origin, line)] = rows(home, "readings", "id", "_origin", "_position")
    assert (number, line) == (1, 1)
    assert origin == str(folder / "a b%20.json")
    assert [event.kind for event in events] == ["started", "finished"]


def test_a_missing_path_is_reported_before_anything_starts(tmp_path: Path) -> None:
    app = app_of(Files("nowhere/at/all", schema=SCHEMA))

    with raises("PATH_MISSING") as caught:
        run(app, tmp_path / "home")

    assert str(caught.value) == (
        "[PATH_MISSING] source 'readings' reads 'nowhere/at/all', which does not exist\n"
        f"  at:  {app.graph.sources[0].at}\n"
        "  fix: make the folder, or correct the path (relative paths start where the command runs)"
    )
    assert not (tmp_path / "home").exists()


def test_the_place_of_a_row_is_right_however_files_are_split(
    spark: SparkSession, small_partitions: None, folder: Path, home: Path
) -> None:
    file = folder / "a.json"
    file.write_text(lines(*({"id": n, "name": "x" * (n % 7)} for n in range(60))))

    run(app_of(Files(str(folder), schema=SCHEMA)), home)

    landed = rows(home, "readings", "_origin", "_position", "id")
    assert len({origin for origin, _, _ in landed}) > 1
    content = file.read_text()
    for origin, position, number in landed:
        start = int(origin.partition("@")[2] or 0)
        # A line belongs to the block it begins in; the first block also has the first line.
        first = content.index("\n", start) + 1 if start else 0
        assert json.loads(content[first:].splitlines()[position - 1])["id"] == number
    assert sorted(number for _, _, number in landed) == list(range(60))
