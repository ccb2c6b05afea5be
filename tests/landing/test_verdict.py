from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.graphs import source

from millstream.landing.land import Landing
from millstream.landing.verdict import Moment
from millstream.systems.memory.source import Memory
from millstream.systems.rate.source import Rate

NO_FRAME: Any = None
"""What is decoded and judged in one function is not touched by Spark before."""
DECODED = pa.record_batch(
    {"value": [b'{"id": 1}'], "_origin": ["a.json"], "_position": pa.nulls(1, pa.int64())}
)
TYPED = pa.record_batch(
    {"_position": [7], "value": [7], "timestamp": [0], "_origin": ["rate"]},
)


@pytest.mark.parametrize(
    ("connector", "batch", "columns"),
    [
        (Memory("id BIGINT"), DECODED, ["id"]),
        (Rate(), TYPED, ["timestamp", "value"]),
    ],
)
def test_rows_have_one_order_of_columns_whether_they_are_decoded_or_came_typed(
    connector: Memory | Rate, batch: pa.RecordBatch, columns: list[str]
) -> None:
    landing = Landing.of(source("s", connector=connector))

    _, work = landing.prepared(NO_FRAME, Moment(0, 0))
    [judged] = work(iter([batch]))

    marks = ["_reason", "_raw", "_origin", "_position", "_arrived_at", "_batch", "_verdict"]
    assert judged.schema.names == [*columns, *marks]
    assert judged.column("_verdict").to_pylist() == ["ok"]


NOW = 1_714_560_000_000_000
"""When the batch arrived, in microseconds since 1970."""
BOUND = NOW - 60_000_000
FUTURE = NOW + 600_000_000


@pytest.mark.parametrize(
    ("us", "verdict"),
    [
        (None, "malformed"),
        (-1, "rejected"),
        (0, "rejected"),
        (1, "late"),
        (BOUND - 1, "late"),
        (BOUND, "ok"),
        (NOW, "ok"),
        (FUTURE, "ok"),
        (FUTURE + 1, "future"),
    ],
)
def test_a_row_is_judged_by_its_time_to_the_microsecond(us: int | None, verdict: str) -> None:
    landing = Landing.of(source("s", event_time="timestamp", connector=Rate(), future="10 minutes"))
    timed = {**TYPED.to_pydict(), "timestamp": pa.array([us], pa.timestamp("us", "UTC"))}

    _, work = landing.prepared(NO_FRAME, Moment(0, NOW, BOUND))
    [judged] = work(iter([pa.record_batch(timed)]))

    assert judged.column("_verdict").to_pylist() == [verdict]


def test_a_record_that_cannot_be_read_is_not_judged_by_its_time() -> None:
    landing = Landing.of(source("s", event_time="at", connector=Memory("id BIGINT, at TIMESTAMP")))
    lines = [b"nonsense", b'{"id": 1, "at": "1960-01-01T00:00:00Z"}']
    raw = {"value": lines, "_origin": ["a", "a"], "_position": pa.array([0, 1], pa.int64())}

    _, work = landing.prepared(NO_FRAME, Moment(0, NOW, BOUND))
    [judged] = work(iter([pa.record_batch(raw)]))

    assert judged.column("_verdict").to_pylist() == ["malformed", "rejected"]
    assert "event time" not in str(judged.column("_reason")[0])
