from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import raises
from tests.tricky import at, queries

from millstream.sql.guard import verified

TABLES = ("dim", "nest", "parts", "t")
_FILE = Path(__file__).parent.parent / "resources" / "hostile.sql"
HOSTILE = [
    line.replace("\\n", "\n")
    for line in _FILE.read_text().splitlines()
    if line and not line.startswith("--")
]
ONLY_SPARK = [
    "SELECT soundex(s) AS x, rand(1) > 2 AS y FROM t",
    "SELECT * FROM (SELECT k, v FROM t) PIVOT (sum(v) FOR k IN ('a' AS x, 'b'))",
    "SELECT from_json('{\"a\": 1}', 'a INT').a AS a -- a comment",
    "SELECT transform(xs, x -> x + 1) AS x, aggregate(xs, 0, (a, x) -> a + x) AS y FROM nest",
    "SELECT percentile(v, 0.5) AS p, listagg(k, ',') WITHIN GROUP (ORDER BY k) AS l FROM t",
    "SELECT * FROM range(3), LATERAL (SELECT 1 AS one)",
    "WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "SELECT count(*) AS n FROM t TABLESAMPLE (100 PERCENT)",
    "SELECT 'it''s' AS a, r'\\' AS b, \"c\" AS c, X'1F' AS d, 5L AS e /* and more */",
    "FROM t SELECT max(v) AS v",
]


def test_there_are_at_least_sixty_hostile_statements() -> None:
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("text", HOSTILE)
def test_a_statement_that_could_do_more_than_read_the_tables_is_refused(text: str) -> None:
    with raises("SQL_NOT_ALLOWED", "SQL_NOT_READING", "SQL_SYNTAX", "UNKNOWN_TABLE"):
        verified(text, TABLES)


# A fixed moment: the names of tests must be the same in every process that collects them.
@pytest.mark.parametrize("text", [*queries(at(2026, 1, 31)), *ONLY_SPARK])
def test_a_query_on_the_tables_passes_with_its_tokens_unchanged(text: str) -> None:
    passed = verified(text, TABLES)

    assert len(passed) == len(text)
    without_comment = text.partition(" --")[0].partition(" /*")[0]
    assert passed.rstrip() == without_comment.rstrip().rstrip(";").rstrip()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 /* /*+ */ , reflect('java.lang.System', 'getenv', 'HOME') -- */",
        "SELECT 1 /* /*+ x */ , reflect('java.lang.System', 'getenv', 'HOME') -- */ \n",
        "SELECT 1 -- \\\n",
    ],
)
def test_what_only_one_of_the_parsers_holds_for_a_comment_does_not_reach_spark(text: str) -> None:
    assert verified(text, TABLES).split() == ["SELECT", "1"]


def test_a_refusal_names_the_part_and_its_place() -> None:
    with raises("SQL_NOT_ALLOWED") as caught:
        verified("SELECT k,\n  reflect('a', 'b') FROM t", TABLES)

    assert str(caught.value).splitlines()[:2] == [
        "[SQL_NOT_ALLOWED] a query may not use function reflect",
        "  at:  query:2:3",
    ]


def test_a_query_that_is_nested_too_deeply_is_refused_for_spark_too() -> None:
    with raises("SQL_SYNTAX", match="nested too deeply"):
        verified("SELECT " + "(" * 5000 + "1" + ")" * 5000, TABLES)
