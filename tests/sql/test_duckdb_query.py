"""How a query in DuckDB ends."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.faults import raises

from millstream.lake.home import Home
from millstream.sql.duckdb_query import DuckDBAnswer, DuckDBEngine
from millstream.sql.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.sql.answer import Answer


def test_a_query_that_closes_as_its_time_ends_is_over_its_limit(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    is_over = threading.Event()

    def read_all(answer: Answer) -> int:
        return len([*answer.batches()])

    def close_first(answer: Answer) -> None:
        assert isinstance(answer, DuckDBAnswer)
        answer.connection.close()
        is_over.wait(2)

    engine = DuckDBEngine(home, Limits(time=timedelta(seconds=1)))
    DuckDBEngine(home, Limits()).run("SELECT 1", read_all)

    with raises("SQL_OVER_LIMIT"):
        engine.run("SELECT 1", close_first)
    is_over.set()
