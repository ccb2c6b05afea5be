from __future__ import annotations

import pyarrow as pa
import pytest
from tests.graphs import source

from millstream.landing.land import Landing
from millstream.landing.verdict import Moment
from millstream.systems.memory.source import Memory
from millstream.systems.rate.source import Rate

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

    [judged] = landing.work(Moment(0, 0))(iter([batch]))

    marks = ["_reason", "_raw", "_origin", "_position", "_arrived_at", "_batch", "_verdict"]
    assert judged.schema.names == [*columns, *marks]
    assert judged.column("_verdict").to_pylist() == ["ok"]
