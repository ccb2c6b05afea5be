from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.faults import raises

from millstream.declare.sql_function import SqlFunction, sql_inputs
from millstream.errors import Location

AT = Location("app.py", 7)


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("SELECT * FROM a", ("a",)),
        ("SELECT * FROM a JOIN b USING (id) WHERE id IN (SELECT id FROM c)", ("a", "b", "c")),
        ("WITH x AS (SELECT * FROM a), y AS (SELECT * FROM x) SELECT * FROM y", ("a",)),
        ("SELECT * FROM a UNION ALL SELECT * FROM a", ("a",)),
        ("SELECT window, count(*) FROM a GROUP BY window(at, '1 minute')", ("a",)),
        ("SELECT window.start, id FROM a GROUP BY id, window (at, '5 min', '1 min')", ("a",)),
        ("SELECT count(*) FROM a GROUP BY session_window(at, '5 minutes')", ("a",)),
        ("SELECT sum(x) OVER w FROM a WINDOW w AS (PARTITION BY b ORDER BY c)", ("a",)),
        ("SELECT explode(tags) AS tag FROM a LATERAL VIEW explode(more) m AS n", ("a",)),
    ],
)
def test_the_names_after_from_are_what_a_query_reads(query: str, reads: tuple[str, ...]) -> None:
    assert tuple(sql_inputs(query, dataset="d", place=lambda _: AT)) == reads


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * FROM", "Expected table name"),
        ("DROP TABLE a", "got DROP"),
        ("SELECT 1; SELECT 2", "got 2 statements"),
        ("", "got 0 statements"),
    ],
)
def test_a_text_that_is_not_one_query_is_refused(query: str, why: str) -> None:
    with raises("SQL_REFUSED") as caught:
        sql_inputs(query, dataset="d", place=lambda _: AT)

    assert caught.value.what.startswith("the SQL of 'd' is not one query: ")
    assert why in caught.value.what


class Session:
    """Views by name and queries that take a while: as much of Spark as a query in SQL needs."""

    def __init__(self) -> None:
        self.catalog, self.views = self, dict[str, Any]()

    def sql(self, query: str) -> Any:
        time.sleep(0.01)
        return self.views[query.rpartition(" ")[2]]

    def dropTempView(self, name: str) -> None:  # noqa: N802
        self.views.pop(name, None)


class Frame:
    def __init__(self, session: Session) -> None:
        self.sparkSession = session

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self.sparkSession.views[name] = self


def test_queries_answered_at_once_in_one_session_are_given_their_own_frames() -> None:
    query = SqlFunction.of("SELECT * FROM a", dataset="d", place=lambda _: AT)
    session = Session()
    frames: list[Any] = [Frame(session) for _ in range(8)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(query, frames)) == frames
