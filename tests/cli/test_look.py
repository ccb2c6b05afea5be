from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home


def test_the_ledger_shows_what_became_of_every_row(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("ledger", "--home", str(home.path))

    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "  source  batches  input  ok  late  future  malformed  rejected",
        "  orders        4     10   7     1       0          2         0  ✓ balanced",
        "",
        "  table    batches  input  written  quarantined  dropped              rules",
        "  by_item        0      0        0            0        0  ✓ balanced",
        "  paid           4      7        5            2        0  ✓ balanced"
        "  2 'price is positive'",
        "",
        f"  ✓ balanced: {home.path}",
    ]


def test_a_ledger_that_does_not_add_up_says_so(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    commit(home, "lost", {"input": 3, "written": 2})

    outcome = millstream("ledger", "--home", str(home.path))

    [line] = [line for line in outcome.out.splitlines() if line.startswith("  lost")]
    assert line.endswith("✗ NOT BALANCED")
    assert f"✗ NOT BALANCED: {home.path}" in outcome.out


def test_the_ledger_has_its_judgements_in_json(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    Path("app.py").write_text('import millstream as ms\napp = ms.App("shop")\n')

    outcome = millstream("ledger", "app.py", "--json")

    found = json.loads(outcome.out)
    assert found["is_balanced"] is True
    [source] = found["sources"]
    assert source["is_balanced"] is True
    assert source["verdicts"]["malformed"] == 2
    assert found["tables"][1]["rules"] == {"price is positive": 2}


def test_a_home_in_which_nothing_ran_is_refused(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("ledger", "--home", "nowhere")

    assert outcome.code == 2
    assert outcome.refusal == [
        f"[HOME_EMPTY] nothing has run in home '{Path.cwd()}/nowhere' yet",
        "  fix: `millstream run APP` first, or name another --home",
    ]


def test_a_query_is_answered_as_an_aligned_table(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream(
        "query", "SELECT item, n FROM by_item ORDER BY n", "--home", str(home.path)
    )

    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "  item   n",
        "  pen    2",
        "  NULL  12",
        "",
        "  2 rows",
    ]


def test_a_query_is_answered_in_json(millstream: Callable[..., Outcome], home: Home) -> None:
    Path("app.py").write_text('import millstream as ms\napp = ms.App("shop")\n')

    outcome = millstream("query", "app.py", "SELECT n FROM by_item ORDER BY n", "--json")

    assert json.loads(outcome.out) == {"columns": ["n"], "rows": [[2], [12]]}


def test_a_query_on_a_table_that_is_not_there_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("query", "SELECT * FROM by_itm", "--home", str(home.path))

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_TABLE] no table 'by_itm' in this home",
        "  at:  query:1:15",
        "  fix: did you mean 'by_item'? tables are by_item, orders, paid",
    ]


def test_an_answer_in_json_is_valid_for_every_type(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    text = """SELECT 1.50 AS d, CAST('NaN' AS DOUBLE) AS x, -1e308 * 10 AS y, X'00FF' AS b,
        DATE '2024-01-31' AS day, TIMESTAMP '2024-01-31 12:00:00' AS at, array(1, NULL) AS xs,
        map('k', 2.5) AS m, named_struct('t', TIMESTAMP '2024-01-31', 'n', NULL) AS s,
        TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01' AS span, NULL AS nothing, 'ü' AS t"""

    outcome = millstream("query", text, "--home", str(home.path), "--json")

    [row] = json.loads(outcome.out, parse_constant=pytest.fail)["rows"]
    assert row == [
        "1.50", "NaN", "-Infinity", "AP8=", "2024-01-31", "2024-01-31T12:00:00+00:00", [1, None],
        {"k": "2.5"}, {"t": "2024-01-31T00:00:00+00:00", "n": None}, "PT86400S", None, "ü",
    ]  # fmt: skip


def test_a_query_that_only_spark_can_answer_offers_spark(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("query", "SELECT rand()", "--home", str(home.path))

    assert outcome.code == 2
    assert outcome.refusal == [
        "[SQL_NOT_TRANSLATED] DuckDB is not known to answer this as Spark does: function rand",
        "  at:  query:1:8",
        "  fix: ask Spark: --engine spark",
    ]


@pytest.mark.spark
def test_spark_answers_what_has_no_translation(
    spark: SparkSession, millstream: Callable[..., Outcome], home: Home
) -> None:
    text = "SELECT item, soundex(item) AS sound FROM by_item VERSION AS OF 0 ORDER BY n"

    outcome = millstream("query", text, "--home", str(home.path), "--engine", "spark", "--json")

    rows = json.loads(outcome.out)["rows"]
    assert rows == [["pen", "P500"], [None, None]]


@pytest.mark.spark
def test_spark_is_not_asked_to_write(
    spark: SparkSession, millstream: Callable[..., Outcome], home: Home
) -> None:
    text = "FROM by_item INSERT INTO paid SELECT n"

    outcome = millstream("query", text, "--home", str(home.path), "--engine", "spark")

    assert outcome.code == 2
    assert outcome.err.startswith("[SQL_NOT_READING] a query reads, in one statement; got INSERT")
