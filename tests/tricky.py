"""Tables whose values tell engines apart: nulls, NaN, halves, days of changed clocks."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

if TYPE_CHECKING:
    from millstream.lake.home import Home

NOW = datetime.now(UTC)
QUERIES = Path(__file__).parent / "resources" / "queries.sql"


def queries(moment: datetime = NOW - timedelta(hours=36)) -> list[str]:
    """Give the queries both engines must answer alike, one a line; one asks as of `moment`."""
    text = QUERIES.read_text().replace("{moment}", f"{moment:%Y-%m-%d %H:%M:%S}")
    lines = text.splitlines()
    return [line for line in lines if line and not line.startswith("--")]


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def make_tables(home: Home) -> None:
    """Write the tables `t`, `dim`, `nest` and `parts`, the last with three versions."""
    home.prepare("tricky", sources=[])
    moment = pa.timestamp("us", tz="UTC")
    columns: list[tuple[str, pa.DataType, list[Any]]] = [
        ("id", pa.int32(), [1, 2, 3, 4, 5, 6, 7, 8]),
        ("k", pa.string(), ["a", "b", None, "a", "c", "b", None, "A"]),
        ("v", pa.int64(), [10, 20, None, 40, 25, None, 10, 2**40]),
        ("d", pa.float64(), [1.5, -2.5, float("nan"), None, 2.675, 0.0, -0.0, 1e300]),
        ("f", pa.float32(), [0.5, -0.1, None, 3.25, 1e10, 0.0, 2.0, 7.0]),
        ("n", pa.decimal128(10, 2), [Decimal(x) if x else None for x in
            ("1.50", "-2.55", None, "0.05", "99999.99", "3.00", "-0.01", "7.77")]),
        ("s", pa.string(), ["hello", "", None, "a_b", "12", "Hello wörld", "héllo", "a% b\\"]),
        ("b", pa.bool_(), [True, False, None, True, True, None, False, False]),
        ("day", pa.date32(), [date(2024, 2, 29), date(2024, 1, 31), None, date(2023, 12, 31),
            date(1969, 12, 31), date(2024, 3, 31), date(2024, 10, 27), date(2025, 1, 1)]),
        ("at", moment, [at(2024, 3, 31, 0, 59, 59, 999999), at(2024, 3, 31, 1), None,
            at(2024, 10, 27, 0, 30), at(2024, 10, 27, 1, 30), at(1969, 12, 31, 23, 59, 59, 500000),
            at(2024, 2, 29, 12, 34, 56, 789000), at(2024, 3, 31, 2, 15)]),
        ("ntz", pa.timestamp("us"), [None, *[datetime(2024, 3, 31, 2, 30)] * 7]),  # noqa: DTZ001
        ("tiny", pa.int8(), [1, 2, 3, -4, None, 100, -100, 0]),
        ("small", pa.int16(), [10, -20, 300, None, 5, 6, 7, 8]),
    ]  # fmt: skip
    _write(home, "t", columns)
    _write(home, "dim", [
        ("k", pa.string(), ["a", "b", "b", None, "z"]),
        ("label", pa.string(), ["Ä one", "two", "deux", "nothing", ""]),
        ("w", pa.int32(), [1, 2, 1, 5, None]),
    ])  # fmt: skip
    inner = pa.struct(
        [("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.float64())]))]
    )
    span = pa.struct([("start", moment), ("end", moment)])
    _write(home, "nest", [
        ("id", pa.int32(), [1, 2, 3, 4]),
        ("xs", pa.list_(pa.int32()), [[3, 1, 2], [], None, [2, None]]),
        ("tags", pa.list_(pa.string()), [["red", "blue"], ["green"], [None, "red"], None]),
        ("m", pa.map_(pa.string(), pa.int32()), [[("x", 1), ("y", 2)], [], None, [("x", None)]]),
        ("st", inner, [{"a": 1, "b": "x", "c": {"d": 1.5}}, {"a": 2, "b": None, "c": None}, None,
            {"a": 3, "b": "ü", "c": {"d": None}}]),
        ("window", span, [*({"start": at(2024, 3, 31, h), "end": at(2024, 3, 31, h + 1)}
            for h in (0, 1, 1)), None]),
    ])  # fmt: skip
    _write_parts(home)


def _write_parts(home: Home) -> None:
    """Write a table of partitions that got columns, and fields of a struct, over time."""
    where: list[tuple[str, pa.DataType, list[Any]]] = [
        ("region", pa.string(), ["north east", None, "süd"]),
        ("year", pa.int32(), [2024, 2024, 2023]),
    ]
    _write(home, "parts", [("id", pa.int64(), [1, 2, 3]), *where], partition_by=["region", "year"])
    small, large = (
        pa.struct([("x", pa.int32())]),
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
    )
    _write(home, "parts", [
        ("id", pa.int64(), [4, 5, 6]), *where, ("added", pa.string(), ["n", None, "é"]),
        ("more", small, [{"x": 1}, None, {"x": 3}]),
    ], mode="append", schema_mode="merge")  # fmt: skip
    _write(home, "parts", [
        ("id", pa.int64(), [7, 8, 9]), *where,
        ("more", large, [{"x": 7, "y": "p"}, None, {"x": 9, "y": None}]),
    ], mode="append", schema_mode="merge")  # fmt: skip
    for version in range(3):
        commit = home.table("parts") / "_delta_log" / f"{version:020d}.json"
        moment = (NOW - timedelta(days=3 - version)).timestamp()
        os.utime(commit, (moment, moment))


def _write(
    home: Home, name: str, columns: list[tuple[str, pa.DataType, list[Any]]], **options: Any
) -> None:
    arrays = [pa.array(values, kind) for _, kind, values in columns]
    rows = pa.table(arrays, names=[column for column, _, _ in columns])
    write_deltalake(str(home.table(name)), rows, **options)
