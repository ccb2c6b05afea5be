from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from millstream.alert.row import objects_of


def text_of(*values: bytes) -> pa.Array[Any]:
    return pa.array(values, pa.binary()).cast(pa.string(), safe=False)


def test_what_python_can_take_is_given_as_it_is() -> None:
    rows = pa.table({"order": ["o1"], "at": [datetime(2024, 5, 1, tzinfo=UTC)]})

    assert objects_of(rows) == (rows.to_pylist(), False)


def test_bytes_that_are_no_text_are_sent_wherever_they_are() -> None:
    odd = text_of(b"o1", b"o\xff")
    inside = pa.StructArray.from_arrays([odd], ["name"])
    ends: Any = pa.array([0, 1, 2], pa.int32())
    pairs = pa.MapArray.from_arrays(ends, odd, odd)
    several = pa.ListArray.from_arrays(ends, inside)
    rows = pa.table(
        {"order": odd, "of": inside, "map": pairs, "list": several, "raw": [b"\xff"] * 2}
    )

    found, is_reworded = objects_of(rows)

    assert is_reworded
    for row, text in zip(found, ("o1", r"o\xff"), strict=True):
        assert row == {
            "order": text,
            "of": {"name": text},
            "map": {text: text},
            "list": [{"name": text}],
            "raw": b"\xff",
        }


def test_times_beyond_those_of_python_are_sent_as_text() -> None:
    of_2024 = datetime(2024, 5, 1, tzinfo=UTC)
    micros = [int(of_2024.timestamp()) * 1_000_000, 253402300800000000]
    rows = pa.table(
        {
            "at": pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "day": pa.array([19844, 2932897], pa.int32()).cast(pa.date32()),
        }
    )

    found, is_reworded = objects_of(rows)

    assert is_reworded
    assert found[0] == {"at": of_2024, "day": date(2024, 5, 1)}
    assert found[1] == {"at": "10000-01-01 00:00:00.000000", "day": "10000-01-01"}
