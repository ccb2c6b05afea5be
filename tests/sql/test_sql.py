from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.faults import raises
from tests.tricky import make_tables, queries

from millstream.errors import MillstreamError
from millstream.lake.delta import FencedTable
from millstream.lake.frontier import NOTHING_YET
from millstream.lake.home import Home
from millstream.lake.log import Facts
from millstream.model.schema import Schema
from millstream.sql import query
from millstream.sql.frontier import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home.at(tmp_path_factory.mktemp("tricky") / "home")
    make_tables(home)
    return home


def test_every_query_of_the_corpus_is_translated(home: Home) -> None:
    refused = []
    for text in queries():
        try:
            query(home, text)
        except MillstreamError as error:
            refused.append(f"{text}: {error.what}")

    assert len(queries()) >= 100
    assert refused == []


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE t",
        "INSERT INTO t SELECT * FROM t",
        "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x",
        "FROM t INSERT INTO t SELECT *",
        "SELECT 1; DROP TABLE t",
        "UPDATE t SET id = 1",
        "DELETE FROM t",
        "MERGE INTO t USING dim ON t.k = dim.k WHEN MATCHED THEN DELETE",
        "CREATE TABLE u AS SELECT 1",
        "ATTACH 'x.db'",
        "COPY t TO 'x.csv'",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "CALL x()",
    ],
)
def test_what_is_not_one_reading_statement_is_refused(home: Home, text: str) -> None:
    with raises("SQL_NOT_READING"):
        query(home, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM duckdb_settings()",
        "SELECT getenv('HOME')",
        "SELECT read_blob('/etc/passwd')",
    ],
)
def test_functions_that_read_files_are_refused(home: Home, text: str) -> None:
    with raises("SQL_NOT_TRANSLATED"):
        query(home, text)


@pytest.mark.parametrize("text", ["SELECT * FROM '/etc/passwd'", "SELECT * FROM `/etc/passwd`"])
def test_a_path_is_no_table(home: Home, text: str) -> None:
    with raises("UNKNOWN_TABLE", "SQL_SYNTAX", "SQL_NOT_TRANSLATED"):
        query(home, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT rand()",
        "SELECT approx_count_distinct(k) FROM t",
        "SELECT id FROM t TABLESAMPLE (10 PERCENT)",
        "SELECT reverse(s) FROM t",
        "SELECT s RLIKE '(?=a)' FROM t",
        "SELECT s RLIKE k FROM t",
        "SELECT s LIKE k FROM t",
        "SELECT id = '5' FROM t",
        "SELECT k + 1 FROM t",
        "SELECT date_format(at, 'QQQ') FROM t",
        "SELECT date_format(at, \"yyyy''MM\") FROM t",
        "SELECT window(at, 'soon') FROM t",
        "SELECT to_date(s, 'yyyy') FROM t",
        "SELECT first(id) FROM t",
        "SELECT array(1, 2)[0]",
        "SELECT * FROM t DISTRIBUTE BY k",
        "SELECT * FROM nest ORDER BY st",
        "SELECT st = st FROM nest",
        "SELECT id, sum(v) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT from_json(s, 'a INT') FROM t",
        "SELECT CAST(st AS STRING) FROM nest",
        "SELECT * FROM t PIVOT (sum(v) FOR k IN ('a', 'b'))",
        "SELECT INTERVAL 1 MONTH AS m",
        "SELECT CAST('2024' AS DATE)",
        "SELECT upper('straße')",
        "SELECT CAST(d AS STRING) FROM t",
        "SELECT TRY_CAST('1.0d' AS DOUBLE)",
        "SELECT date_add(day, 1.9) FROM t",
        "SELECT lag(id, 1, 1.5) OVER (ORDER BY id) AS x FROM t",
        "SELECT substring(s, v) FROM t",
        "SELECT k, sum(v) AS v FROM t GROUP BY k HAVING v > 10",
        "SELECT id FROM t WHERE day IN (SELECT k FROM dim)",
        "SELECT * FROM t WITH (NOLOCK)",
        "SELECT * FROM (SELECT 1 AS k, 2 AS k) NATURAL JOIN (SELECT 1 AS k, 2 AS k)",
    ],
)
def test_what_only_spark_can_be_trusted_with_is_refused(home: Home, text: str) -> None:
    with raises("SQL_NOT_TRANSLATED") as caught:
        query(home, text)

    assert caught.value.fix == "ask Spark: --engine spark"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id / 0 FROM t",
        "SELECT id % 0 FROM t",
        "SELECT n / 0 FROM t",
        "SELECT id div 0 FROM t",
        "SELECT 2147483647 + 1",
        "SELECT CAST(9223372036854775807 AS BIGINT) * 2",
        "SELECT CAST('1.5' AS INT)",
        "SELECT CAST(s AS INT) FROM t",
        "SELECT CAST('abc' AS DATE)",
        "SELECT CAST(1000 AS TINYINT)",
        "SELECT CAST(12345.6 AS DECIMAL(4, 1))",
        "SELECT xs[5] FROM nest",
        "SELECT element_at(xs, 0) FROM nest",
        "SELECT (SELECT id FROM t) AS one",
        "SELECT tiny + tiny FROM t",
    ],
)
def test_what_spark_stops_at_stops_here_too(home: Home, text: str) -> None:
    with raises("SQL_FAILED"):
        query(home, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CAST(2 AS DECIMAL(10, 0)) / CAST(3 AS DECIMAL(10, 0))", Decimal("0.66666666667")),
        ("CAST(-2 AS DECIMAL(10, 0)) / CAST(3 AS DECIMAL(10, 0))", Decimal("-0.66666666667")),
        ("CAST(1.9D AS INT)", 1),
        ("CAST(-1.9D AS INT)", -1),
        ("'ab' NOT LIKE 'a%'", False),
        ("'ab' LIKE 'a%'", True),
    ],
)
def test_values_are_those_that_spark_gives(home: Home, text: str, value: object) -> None:
    assert query(home, f"SELECT {text} AS x") == (("x",), [(value,)])


def test_a_refusal_names_the_construct_and_where_it_is(home: Home) -> None:
    with raises("SQL_NOT_TRANSLATED") as caught:
        query(home, "SELECT id,\n       soundex(s) FROM t")

    assert str(caught.value).splitlines() == [
        "[SQL_NOT_TRANSLATED] DuckDB is not known to answer this as Spark does: function soundex",
        "  at:  query:2:8",
        "  fix: ask Spark: --engine spark",
    ]


def test_an_unknown_column_is_reported_with_its_place_and_the_nearest_name(home: Home) -> None:
    with raises("UNKNOWN_COLUMN") as caught:
        query(home, "SELECT lable FROM dim")

    assert str(caught.value).splitlines() == [
        "[UNKNOWN_COLUMN] no column 'lable' here",
        "  at:  query:1:8",
        "  fix: did you mean 'label'? columns are k, label, w",
    ]


def test_an_unknown_field_of_a_struct_is_reported_with_the_fields(home: Home) -> None:
    with raises("UNKNOWN_COLUMN", match="no column 'zz' here"):
        query(home, "SELECT st.zz FROM nest")


def test_a_column_of_two_tables_must_be_said_of_which(home: Home) -> None:
    with raises("AMBIGUOUS_COLUMN", match="'k' may be of more than one table"):
        query(home, "SELECT k FROM t JOIN dim ON t.k = dim.k")


def test_an_unknown_table_is_reported_with_its_place(home: Home) -> None:
    with raises("UNKNOWN_TABLE") as caught:
        query(home, "SELECT * FROM t JOIN dimm ON true")

    assert "did you mean 'dim'?" in caught.value.fix
    assert str(caught.value.at) == "query:1:22"


@pytest.mark.parametrize("text", ["SELECT FROM WHERE", "SELECT 'x", "SELECT (1", "", ";"])
def test_what_cannot_be_read_is_reported(home: Home, text: str) -> None:
    with raises("SQL_SYNTAX", "SQL_NOT_TRANSLATED"):
        query(home, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT *\nFROM {}@v0",
        "SELECT *\nFROM {}@v9 AS p",
        "SELECT *\nFROM {}@nonsense",
        "SELECT *\nFROM {}@20260131000000000",
        "SELECT *\nFROM {}@",
        "WITH s AS (SELECT *\nFROM {}@v0) SELECT * FROM s",
    ],
)
def test_a_version_after_an_at_sign_is_refused_with_how_to_write_it(home: Home, text: str) -> None:
    with raises("SQL_SYNTAX") as caught:
        query(home, text.format("parts"))

    assert str(caught.value).splitlines() == [
        "[SQL_SYNTAX] the query cannot be read: Spark's SQL has no @",
        "  at:  query:2:11",
        "  fix: ask for a version of a table with orders VERSION AS OF 3, "
        "or with orders TIMESTAMP AS OF '2026-01-31 12:00:00'",
    ]


def test_an_at_sign_in_a_string_or_a_comment_is_no_version(home: Home) -> None:
    assert query(home, "SELECT 'a@v0' AS s -- b@v0") == (("s",), [("a@v0",)])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM parts :v0",
        "SELECT * FROM parts AS ?",
        "SELECT * FROM parts $v0",
        "SELECT s AS :name FROM t",
        "SELECT ? AS one",
    ],
)
def test_a_parameter_is_refused(home: Home, text: str) -> None:
    with raises("SQL_NOT_TRANSLATED", match="a parameter"):
        query(home, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT * FROM " + "(" * 5000 + "t" + ")" * 5000,
        "SELECT 1" + " + 1" * 5000,
    ],
)
def test_a_query_that_is_nested_too_deeply_is_refused(home: Home, text: str) -> None:
    with raises("SQL_SYNTAX", match="it is nested too deeply") as caught:
        query(home, text)

    assert str(caught.value.at) == "query:1:1"
    assert caught.value.fix == "nest fewer parts: give them names with WITH"


@pytest.mark.parametrize(
    "kind",
    [
        "nonsense",
        "UINT",
        "INTERVAL DAY",
        "ARRAY<INTERVAL DAY>",
        "ARRAY<nonsense>",
        "DECIMAL(x)",
        "DECIMAL(2.5)",
        "DECIMAL(3, 1, 4)",
        "DECIMAL(99, 2)",
        "TIMESTAMP(3)",
        "STRING COLLATE UTF8_LCASE",
        "STRING(3)",
        "NULLABLE(INT)",
    ],
)
@pytest.mark.parametrize("form", ["CAST(1 AS {})", "TRY_CAST(1 AS {})", "CAST(1 AS {}) AS one"])
def test_a_cast_to_a_type_that_is_not_known_is_refused(home: Home, form: str, kind: str) -> None:
    with raises("SQL_SYNTAX", "SQL_NOT_TRANSLATED") as caught:
        query(home, f"SELECT {form.format(kind)}")

    assert caught.value.fix


@pytest.mark.parametrize(
    "text", ["SELECT\n '\udcff'", "SELECT\n  \udcff", "SELECT\n `\udcff` FROM t"]
)
def test_a_query_that_is_not_utf_8_is_refused_with_its_place(home: Home, text: str) -> None:
    with raises("SQL_SYNTAX") as caught:
        query(home, text)

    assert str(caught.value).splitlines() == [
        "[SQL_SYNTAX] the query cannot be read: it is not UTF-8",
        "  at:  query:2:3",
        "  fix: send the query as UTF-8",
    ]


def test_a_version_that_is_not_there_is_refused(home: Home) -> None:
    with raises("UNKNOWN_VERSION", match="has no version 9"):
        query(home, "SELECT * FROM parts VERSION AS OF 9")


@pytest.mark.parametrize("moment", ["2023-12-31", "2030-01-01"])
def test_a_moment_before_the_first_or_after_the_last_commit_is_refused(
    home: Home, moment: str
) -> None:
    with raises("UNKNOWN_MOMENT", match="no version as of"):
        query(home, f"SELECT * FROM parts TIMESTAMP AS OF '{moment}'")


def test_rows_that_were_deleted_or_overwritten_are_not_read(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare("a", sources=[])
    path = str(home.table("u"))
    write_deltalake(path, pa.table({"a": [1, 2, 3]}))
    DeltaTable(path).delete("a = 2")
    write_deltalake(path, pa.table({"a": [9]}), mode="append")

    assert sorted(query(home, "SELECT a FROM u")[1]) == [(1,), (3,), (9,)]
    assert sorted(query(home, "SELECT a FROM u VERSION AS OF 0")[1]) == [(1,), (2,), (3,)]


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare("a", sources=[])
    schema = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    DeltaTable.create(str(home.table("u")), schema)

    assert query(home, "SELECT * FROM u") == (("a", "b"), [])


def test_a_table_with_what_only_spark_reads_is_refused(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare("a", sources=[])
    DeltaTable.create(str(home.table("u")), pa.schema([("a", pa.int32())]))
    log = home.table("u") / "_delta_log" / f"{0:020d}.json"
    protocol = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
    protocol += '"readerFeatures":["columnMapping"],"writerFeatures":["columnMapping"]}}\n'
    kept = [line for line in log.read_text().splitlines() if '"protocol"' not in line]
    log.write_text(protocol + "\n".join(kept) + "\n")

    with raises("TABLE_NOT_TRANSLATED", match="columnMapping"):
        query(home, "SELECT * FROM u")


def test_nan_is_found_although_the_footers_of_files_leave_it_out(home: Home) -> None:
    assert query(home, "SELECT id FROM t WHERE d > 1e300")[1] == [(3,)]
    assert (True,) in query(home, "SELECT d > 1e300 AS above FROM t")[1]


def test_values_come_as_spark_would_give_them(home: Home) -> None:
    columns, [row] = query(home, "SELECT sum(n), avg(n), count(*), 1 / 4, 5 div 2 FROM t")

    assert columns == ("sum(n)", "avg(n)", "count(1)", "(1 / 4)", "(5 div 2)")
    assert row == (Decimal("100009.75"), Decimal("14287.107143"), 8, 0.25, 2)


def test_the_time_between_two_moments_is_a_span(home: Home) -> None:
    _, rows = query(home, "SELECT TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01' AS span")

    assert rows == [(timedelta(days=1),)]


def test_how_far_each_dataset_is_complete_can_be_asked_in_sql(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=["orders"])
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    us = round(noon.timestamp() * 1_000_000)
    reported = {
        "orders": Facts("q", batch=3, frontier=us, event_time="at", quiet_since=us + 1),
        "paid": Facts("q", batch=0, frontier=NOTHING_YET),
        "paid__quarantine": Facts("q", batch=0),
    }
    for name, facts in reported.items():
        FencedTable.create(home.table(name), schema=Schema.parse("at TIMESTAMP").to_json())
        FencedTable(home.table(name), name=name, epoch=1).append([], facts)

    columns, rows = query(home, "SELECT * FROM _FRONTIER ORDER BY name")
    _, complete = query(
        home, "SELECT o.at FROM orders o, _frontier f WHERE f.name = 'orders' AND at < complete_to"
    )

    assert columns == tuple(name for name, _ in COLUMNS)
    quiet = noon + timedelta(microseconds=1)
    assert rows == [
        ("orders", "source", noon, "at", 1, 3, quiet),
        ("paid", "table", None, None, 1, 0, None),
    ]
    assert complete == []
    with raises("SQL_NOT_TRANSLATED"):
        query(home, "SELECT * FROM _frontier VERSION AS OF 1")
