"""What all stores have in common, held against real servers."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.faults import raises
from tests.systems.conftest import BY_KEY, EVERY, TO_PYTHON
from tests.systems.stores import (
    ARROW,
    ITEMS,
    Driven,
    connected,
    every_row_in,
    opened,
    put,
    row_of,
    rows_in,
    table,
)

from millstream.errors import OvertakenError, StoreAheadError, StoreFailedError, StoreRestoredError
from millstream.lake.fence import Decision
from millstream.serve.fence import Driver
from millstream.serve.shape import GONE, Column
from millstream.testing.contract import check_sink

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]


@pytest.mark.parametrize("make", EVERY, indirect=True)
def test_every_store_keeps_the_contract_of_sinks(
    make: Make, request: pytest.FixtureRequest
) -> None:
    sinks: dict[str, Any] = {}
    # Where rows need no key, none hides that one was written twice.
    has_key = request.node.callspec.params["make"] in ("redis", "kafka")

    def driven(name: str) -> Driven:
        if name not in sinks:
            key = ["id"] if has_key else []
            sinks[name] = make(name=name.replace(" ", "_"), key=key)
        return Driven(sinks[name], every_row_in)

    report = check_sink(driven)

    report.assert_guarantee("exactly once")


@pytest.mark.parametrize("make", BY_KEY, indirect=True)
def test_a_driver_that_dies_between_fence_and_commit_has_written_nothing(make: Make) -> None:
    sink = make(key=["id"])
    store = opened(sink)
    put(store, 0, table({"id": 1, "text": "one"}))

    def die(_: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put(store, 1, table({"id": 1, "text": "two"}), settle=die)

    assert [row["text"] for row in rows_in(sink)] == ["one"]
    later = opened(sink, epoch=2)
    assert put(later, 1, table({"id": 1, "text": "two"})).applied
    again = put(later, 1, table({"id": 1, "text": "three"}), digest="other")
    assert again.decision is Decision.CHANGED
    assert put(later, 1, table({"id": 1, "text": "two"})).decision is Decision.SKIP
    assert [row["text"] for row in rows_in(sink)] == ["two"]
    assert later.fence() == put(later, 1, table()).fence


@pytest.mark.parametrize("make", BY_KEY, indirect=True)
def test_a_place_belongs_to_one_dataset_and_to_its_last_driver(make: Make) -> None:
    sink = make(key=["id"])
    early = opened(sink)
    put(early, 0, table({"id": 1, "text": "one"}))
    opened(sink, epoch=2)

    with pytest.raises(OvertakenError):
        put(early, 1, table({"id": 1, "text": "stale"}))
    with pytest.raises(OvertakenError):
        connected(sink, Driver("shop/items", 1, "query")).take()
    if type(sink).__name__ != "Topic":  # a topic may have several writers
        with raises("STORE_TAKEN", match="is written by shop/items; shop/others may not"):
            connected(sink, Driver("shop/others", 9)).take()
    assert [row["text"] for row in rows_in(sink)] == ["one"]


NEW_HOME = Driver("shop/items", 1)
OLD_COPY = Driver("shop/items", 9, "query", planned=lambda: 0)
BEYOND = Driver("shop/items", 9, "query", committed=4, planned=lambda: 4)


@pytest.mark.parametrize("make", EVERY, indirect=True)
def test_a_driver_that_is_refused_leaves_the_one_that_is_at_work_alone(make: Make) -> None:
    sink = make(key=["id"])
    at_work = opened(sink, epoch=5, mode="append")
    for batch in (0, 1):
        put(at_work, batch, table({"id": batch, "text": "a"}))

    with pytest.raises(StoreAheadError, match="of another checkpoint; this one knows"):
        connected(sink, NEW_HOME, mode="append").take()
    with pytest.raises(StoreAheadError, match="this one knows batches up to 0"):
        connected(sink, OLD_COPY, mode="append").take()
    if type(sink).__name__ != "Topic":  # who asks it how far it got has come already
        with pytest.raises(StoreRestoredError, match="has committed batch 4"):
            connected(sink, BEYOND, mode="append").take()

    assert put(at_work, 2, table({"id": 2, "text": "a"})).applied


@pytest.mark.parametrize("make", BY_KEY, indirect=True)
def test_two_homes_with_the_same_epoch_do_not_both_write(make: Make) -> None:
    sink = make(key=["id"])
    original = opened(sink)
    put(original, 0, table({"id": 1, "text": "original"}))
    copied = opened(sink)

    with pytest.raises(OvertakenError):
        put(original, 1, table({"id": 1, "text": "original again"}))
    assert put(copied, 1, table({"id": 1, "text": "copy"})).applied


@pytest.mark.parametrize("make", BY_KEY, indirect=True)
def test_a_store_that_lost_a_batch_while_the_app_ran_is_refused(make: Make) -> None:
    sink = make(key=["id"])
    store = opened(sink)
    put(store, 0, table({"id": 1, "text": "one"}))

    with pytest.raises(StoreRestoredError, match="holds batches up to 0"):
        put(store, 2, table({"id": 1, "text": "three"}))


@pytest.mark.parametrize("make", BY_KEY, indirect=True)
def test_rows_change_by_key_and_are_deleted_when_they_are_gone(make: Make) -> None:
    sink = make(key=["id"], delete_when="text = 'gone'")
    schema = ARROW.append(pa.field(GONE, pa.bool_()))
    store = opened(sink)

    put(
        store,
        0,
        table(
            {"id": 1, "text": "a", GONE: False}, {"id": 2, "text": "b", GONE: False}, schema=schema
        ),
    )
    put(
        store,
        1,
        table({"id": 2, "text": "gone", GONE: True}, schema=schema),
        table(
            {"id": 1, "text": "c", GONE: False}, {"id": 3, "text": None, GONE: False}, schema=schema
        ),
    )

    assert rows_in(sink) == [{"id": 1, "text": "c"}, {"id": 3, "text": None}]


def test_of_two_rows_with_one_key_the_newest_stands_in_and_across_batches(make: Make) -> None:
    sink = make(key=["text"], newest_by="id")
    store = opened(sink)

    put(store, 0, table({"id": 3, "text": "a"}, {"id": 12, "text": "a"}, {"id": 7, "text": "a"}))
    put(store, 1, table({"id": 9, "text": "a"}, {"id": 1, "text": "b"}))

    assert rows_in(sink) == [{"id": 1, "text": "b"}, {"id": 12, "text": "a"}]


SMALL, LARGE = pa.decimal128(20, 10), pa.decimal128(38, 2)
OLD_AND_NEW = [
    ("decimal(10,2)", pa.decimal128(10, 2), Decimal("9.50"), Decimal("10.50")),
    ("decimal(10,2)", pa.decimal128(10, 2), Decimal("-10.50"), Decimal("-9.50")),
    ("decimal(10,2)", pa.decimal128(10, 2), Decimal("-0.01"), Decimal("0.00")),
    ("decimal(20,10)", SMALL, Decimal("0.0000000009"), Decimal("0.0000000010")),
    ("decimal(20,10)", SMALL, Decimal("0.0000000009"), Decimal("1.5000000000")),
    ("decimal(38,2)", LARGE, Decimal(10**30) - 1, Decimal(10**30)),
    ("long", pa.int64(), 9_999_999_999_999_999, 10_000_000_000_000_000),
    ("long", pa.int64(), -9_007_199_254_740_993, -9_007_199_254_740_992),
    ("long", pa.int64(), 9_007_199_254_740_992, 9_007_199_254_740_993),
    ("double", pa.float64(), -2.5, 1e16),
]


@pytest.mark.parametrize(("kind", "arrow", "old", "new"), OLD_AND_NEW)
def test_the_newest_is_found_by_its_value(
    make: Make, kind: str, arrow: pa.DataType, old: Any, new: Any
) -> None:
    sink = make(key=["id"], newest_by="n")
    store = opened(sink, columns=[ITEMS[0], Column("n", kind)])
    fields: list[Any] = [("id", pa.int64()), ("n", arrow)]
    rows = [[{"id": 1, "n": old}, {"id": 2, "n": new}], [{"id": 1, "n": new}, {"id": 2, "n": old}]]

    for batch, some in enumerate(rows):
        put(store, batch, table(*some, schema=pa.schema(fields)))

    assert [row_of(sink, id=n) for n in (1, 2)] == [{"id": n, "n": new} for n in (1, 2)]


@pytest.mark.parametrize("make", BY_KEY, indirect=True)
def test_a_row_without_a_key_is_refused_and_the_others_are_written(make: Make) -> None:
    sink = make(key=["id"])

    written = put(opened(sink), 0, table({"id": None, "text": "a"}, {"id": 2, "text": "b"}))

    assert [(r.rows.to_pylist(), r.reason) for r in written.refused] == [
        ([{"id": None, "text": "a"}], "a column of the key (id) is null")
    ]
    assert rows_in(sink) == [{"id": 2, "text": "b"}]


def texts(*values: bytes) -> pa.Array[Any]:
    """Give texts that need not be UTF-8, as those of Spark."""
    found = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), found.buffers())


YEAR_10000 = 253_402_300_800_000_000
HARD = {
    "text": (Column("text", "string"), texts(b"a", b"\xff\xfe", b"c")),
    "nested": (
        Column("text", "json"),
        pa.StructArray.from_arrays([texts(b"a", b"\xff\xfe", b"c")], ["t"]),
    ),
    "time": (
        Column("text", "json"),
        pa.StructArray.from_arrays(
            [pa.array([0, YEAR_10000, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))], ["t"]
        ),
    ),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("make", TO_PYTHON, indirect=True)
def test_a_row_whose_values_cannot_be_written_is_refused_and_the_others_are_written(
    make: Make, kind: str
) -> None:
    column, values = HARD[kind]
    sink = make(key=["id"])
    store = opened(sink, columns=[ITEMS[0], column], mode="append")
    rows = pa.table({"id": pa.array([1, 2, 3]), "text": values})

    written = put(store, 0, rows)

    [refused] = written.refused
    assert refused.rows.column("id").to_pylist() == [2]
    assert refused.reason
    assert [row["id"] for row in rows_in(sink)] == [1, 3]
    assert put(store, 1, rows.slice(1, 1)).refused


@pytest.mark.parametrize("make", TO_PYTHON, indirect=True)
def test_nested_numbers_are_the_same_in_every_store(make: Make) -> None:
    sink = make(key=["id"])
    numbers = [float("nan"), float("inf"), float("-inf"), 0.1, None]
    kind = pa.struct([("of_64", pa.list_(pa.float64())), ("of_32", pa.list_(pa.float32()))])
    fields: list[Any] = [("id", pa.int64()), ("n", kind)]
    schema = pa.schema(fields)
    row = {"id": 1, "n": {"of_64": numbers, "of_32": numbers}}
    store = opened(sink, columns=[ITEMS[0], Column("n", "json")], mode="append")

    put(store, 0, table(row, schema=schema))

    [found] = rows_in(sink)
    reported = json.loads(found["n"]) if isinstance(found["n"], str) else found["n"]
    expected = ["NaN", "Infinity", "-Infinity", 0.1, None]
    assert reported == {"of_64": expected, "of_32": expected}


@pytest.mark.parametrize("make", TO_PYTHON[-2:], indirect=True)
def test_a_number_of_32_bits_is_written_with_the_digits_it_has(make: Make) -> None:
    sink = make(key=["id"])
    fields: list[Any] = [("id", pa.int64()), ("n", pa.float32())]
    schema = pa.schema(fields)
    store = opened(sink, columns=[ITEMS[0], Column("n", "float")], mode="append")

    values = [0.1, float("nan"), 16777216.0, 3.4028234e38, 1e-45, None]
    rows = [{"id": id_, "n": n} for id_, n in enumerate(values)]
    put(store, 0, table(*rows, schema=schema))

    found = [row.get("n") for row in rows_in(sink)]
    assert found == [0.1, "NaN", 16777216.0, 3.4028235e38, 1e-45, None]


EVERYTHING = {
    "name": ("string", pa.string(), 'a,"b"\nc \\N é'),
    "yes": ("boolean", pa.bool_(), True),
    "small": ("byte", pa.int8(), -128),
    "long": ("long", pa.int64(), 2**63 - 1),
    "real": ("double", pa.float64(), 0.1),
    "price": ("decimal(10,2)", pa.decimal128(10, 2), Decimal("12345678.90")),
    "day": ("date", pa.date32(), date(2024, 2, 29)),
    "at": ("timestamp", pa.timestamp("us", "UTC"), datetime(2024, 2, 29, 12, 0, 0, 1, UTC)),
    "local": ("timestamp_ntz", pa.timestamp("us"), datetime.fromisoformat("2024-02-29")),
    "raw": ("binary", pa.binary(), b"\x00\xff\\x"),
    "nested": (
        "json",
        pa.struct([("start", pa.string()), ("tags", pa.map_(pa.string(), pa.list_(pa.int64())))]),
        {"start": 'q"', "tags": [("a", [1, 2])]},
    ),
    "nothing": ("string", pa.string(), None),
    "empty": ("string", pa.string(), ""),
}


@pytest.mark.parametrize("key", ["name", "at"])
def test_a_row_is_looked_up_by_its_key_with_the_values_it_was_written_with(
    make: Make, key: str
) -> None:
    sink = make(key=[key])
    columns = [Column(name, kind) for name, (kind, _, _) in EVERYTHING.items()]
    fields: list[Any] = [(name, kind) for name, (_, kind, _) in EVERYTHING.items()]
    row = {name: value for name, (_, _, value) in EVERYTHING.items()}
    store = opened(sink, columns=columns)

    assert not put(store, 0, table(row, schema=pa.schema(fields))).refused

    expected = row | {"nested": {"start": 'q"', "tags": {"a": [1, 2]}}}
    assert row_of(sink, **{key: row[key]}) == expected
    absent = "absent" if key == "name" else datetime(2020, 1, 1, tzinfo=UTC)
    assert row_of(sink, **{key: absent}) is None


def test_a_row_that_python_cannot_hold_is_reported_and_not_taken_for_none(make: Make) -> None:
    sink = make(key=["id"])
    store = opened(sink, columns=[ITEMS[0], Column("at", "timestamp")])
    times = pa.array([YEAR_10000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert not put(store, 0, pa.table({"id": pa.array([1]), "at": times})).refused

    with pytest.raises(StoreFailedError, match=r"10000|10K|Invalid isoformat"):
        row_of(sink, id=1)
