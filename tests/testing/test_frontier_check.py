from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.lake.delta import FencedTable
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.log import Facts
from millstream.model.schema import Schema
from millstream.testing.frontier_check import frontier_faults

if TYPE_CHECKING:
    from pathlib import Path

MINUTE = 60_000_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS = "at TIMESTAMP, window STRUCT<`start`: TIMESTAMP, `end`: TIMESTAMP>"


def us(minute: int) -> int:
    return round(NOON.timestamp() * 1_000_000) + minute * MINUTE


def test_a_frontier_that_goes_back_or_that_rows_come_from_before_is_found(home: Path) -> None:
    place, path = Home.at(home), Home.at(home).table("t")
    FencedTable.create(path, schema=Schema.parse(COLUMNS).to_json())
    table = FencedTable(path, name="t", epoch=1)

    def write(batch: int, frontier: int | None, at: int, end: int) -> None:
        moment = pa.timestamp("us", tz="UTC")
        window = pa.struct([("start", moment), ("end", moment)])
        rows = pa.table(
            {
                "at": pa.array([us(at)], moment),
                "window": pa.array([{"start": us(end - 1), "end": us(end)}], window),
            }
        )
        file = home / f"{batch}.parquet"
        pq.write_table(rows, file)
        reported = None if frontier is None else us(frontier)
        facts = Facts("q", batch=batch, frontier=reported, event_time="at", mode="append")
        table.append([DataFile.read(file, {})], facts)

    write(0, 5, at=3, end=4)
    write(1, 6, at=5, end=6)
    assert list(frontier_faults(place, "t")) == []

    write(2, 7, at=5, end=7)
    write(3, 8, at=7, end=6)
    table.publish(Facts("q", batch=3, frontier=us(7), mode="append"))

    assert sorted(frontier_faults(place, "t")) == [
        "t was complete to 2026-01-01 12:06:00+00:00, and batch 2 has a row of at "
        "2026-01-01 12:05:00+00:00",
        "t was complete to 2026-01-01 12:07:00+00:00, and batch 3 has a row of window "
        "2026-01-01 12:06:00+00:00",
        "t was complete to 2026-01-01 12:08:00+00:00 and is not at version 5",
    ]
