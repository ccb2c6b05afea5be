from __future__ import annotations

import pytest

from millstream.declare import sql_inputs
from millstream.errors import Location, SqlRefusedError

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
    with pytest.raises(SqlRefusedError) as caught:
        sql_inputs(query, dataset="d", place=lambda _: AT)

    assert caught.value.what.startswith("the SQL of 'd' is not one query: ")
    assert why in caught.value.what
