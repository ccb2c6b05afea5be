"""One query may use an operator twice on the same rows, as when a view is read twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from tests.operators.apps import one_source

import millstream as ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from millstream.testing import Script

pytestmark = pytest.mark.spark

PATTERN = (
    ms.pattern(key="ad", within="10 seconds").step("one", "site = 'a'").step("two", "site = 'b'")
)


@ms.stateful(key="ad", state="n BIGINT", emits="ad STRING, n BIGINT")
def counted(ad: str, rows: tuple[Any, ...], state: Any, _: ms.Timer) -> Iterator[tuple[str, int]]:
    state.n = (state.n or 0) + len(rows)
    yield ad, state.n


def paired(shown: DataFrame) -> DataFrame:
    others = shown.where("site = 'b'")
    return ms.join_within(shown, others, on="ad", within="5 seconds", how="left").where(
        "at_right IS NULL"
    )


def topped(shown: DataFrame) -> DataFrame:
    window = F.window("at", "10 seconds").alias("window")
    return ms.top_k(shown.groupBy(window, "ad").count(), by="count", k=3, per="window")


OPERATORS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "stateful": counted,
    "dedup": lambda shown: ms.dedup(shown, "ad", within="1 second"),
    "absent": lambda shown: ms.absent(shown, PATTERN),
    "join_within": paired,
    "top_k": topped,
    "session": lambda shown: shown.groupBy(F.session_window("at", "5 seconds"), "ad").count(),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_both_uses_of_an_operator_give_their_rows(
    stream: Callable[..., Script], operator: str
) -> None:
    app = one_source("twice")

    @app.table()
    def both(shown: DataFrame) -> DataFrame:
        found = OPERATORS[operator](shown)
        first, second = (found.select("ad", F.lit(n).alias("use")) for n in (1, 2))
        return first.union(second)

    with stream(app) as s:
        s.send("shown", ad="x", at="12:00:00", site="a")
        s.batch()
        s.send("shown", ad="y", at="12:05:00", site="b")
        s.batch()
        s.drain()

        assert sorted(s.table("both").rows("ad", "use")) == [("x", 1), ("x", 2)]
