"""An app with functions of keys, for scripts and proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.operators.state.chance import COLUMNS, visits

import millstream as ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from millstream.operators.state.stateful import Stateful

CAST = [
    {"user": "ab"[n % 3 // 2], "at": f"12:00:{n * 5:02d}", "value": value}
    for n, value in enumerate((1, 9, 13, 5, 9, 1, 1, 13, 9, 5))
]


@ms.stateful(
    key="user",
    state="n BIGINT",
    emits="user STRING, n BIGINT",
    ttl="1 day",
    initial=lambda spark: spark.createDataFrame([("ann", 10)], "user STRING, n BIGINT"),
)
def resumed(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
    """Counts that go on from those of a table."""
    state.n = (state.n or 0) + len(rows)
    yield user, state.n


def changed_state() -> Stateful:
    @ms.stateful(key="user", state="n INT, m BIGINT", emits="user STRING, n BIGINT")
    def resumed(user: str, rows: Any, state: Any, timer: ms.Timer) -> None: ...

    return resumed


def visits_app(counts: Stateful = resumed) -> ms.App:
    app = ms.App("visits")

    @app.source(event_time="at", watermark="10 seconds")
    def hits() -> ms.Memory:
        return ms.Memory(COLUMNS)

    @app.table(expect={"small": "total IS NULL OR total < 100"})
    def visit(hits: DataFrame) -> DataFrame:
        return visits(hits)

    @app.table()
    def count(hits: DataFrame) -> DataFrame:
        return counts(hits)

    return app


@ms.stateful(
    key="user",
    state="n BIGINT",
    emits="user STRING, n BIGINT",
    order="arrival",
    timeout="processing 1 minute",
)
def gone(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
    """Who has not come for a minute, by the clock."""
    state.n = (state.n or 0) + len(rows)
    if timer.fired:
        yield user, state.n


def quiet_app() -> ms.App:
    app = ms.App("quiet")

    @app.source()
    def hits() -> ms.Memory:
        return ms.Memory(COLUMNS)

    @app.table()
    def left(hits: DataFrame) -> DataFrame:
        return gone(hits)

    return app
