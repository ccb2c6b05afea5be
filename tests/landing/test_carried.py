"""Columns that pass through Spark unread come back beside their rows, however Spark cuts them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, strategies as st

from millstream.landing.carried import CARRIED, pack, unpack

COLUMNS = ("a", "read", "b", "c.d")
SIZES = st.lists(st.integers(0, 7), max_size=6)


def rows_of(sizes: list[int]) -> list[pa.RecordBatch]:
    """Make batches of these sizes; no two values are equal."""
    first, batches = 0, []
    for size in sizes:
        rows = range(first, first + size)
        columns = {
            name: [
                None if row % 3 == number else f"{name}{row}" for row in range(first, first + size)
            ]
            for number, name in enumerate(COLUMNS)
        }
        columns["read"] = [str(row) for row in rows]
        batches.append(pa.RecordBatch.from_pydict(columns, schema(*COLUMNS)))
        first += size
    return batches


def schema(*names: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.string()) for name in names])


def listed(batches: list[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]


@given(packed=SIZES, cuts=st.lists(st.integers(1, 9), max_size=30))
def test_rows_come_back_whole_however_they_are_cut(packed: list[int], cuts: list[int]) -> None:
    batches = rows_of(packed)
    through = list(pack(iter(batches), ["read"]))
    table = pa.Table.from_batches(through, pa.schema([*schema("read"), (CARRIED, pa.binary())]))
    starts = [0, *(sum(cuts[: n + 1]) for n in range(len(cuts)))]
    sizes = [*cuts, max(sum(packed) - sum(cuts), 0)]
    recut = [
        batch
        for start, size in zip(starts, sizes, strict=True)
        for batch in table.slice(start, size).combine_chunks().to_batches()
    ]

    assert listed([*unpack(iter(recut), COLUMNS)]) == listed(batches)


def test_what_spark_computes_comes_beside_the_rows_or_replaces_a_column() -> None:
    [batch] = pack(iter(rows_of([2])), ["read"])
    computed = pa.array(["x", "y"])
    for name in ("new", "a"):
        added = batch.append_column(name, computed)

        [found] = unpack(iter([added]), [*dict.fromkeys((*COLUMNS, name))])

        assert found.column(name).to_pylist() == ["x", "y"]
        assert found.column("c.d").to_pylist() == ["c.d0", "c.d1"]


def test_spark_gets_the_columns_that_it_reads_and_one_value_of_each_batch() -> None:
    [batch] = pack(iter(rows_of([3])), ["read"])

    assert batch.schema.names == ["read", CARRIED]
    assert [value is None for value in batch.column(CARRIED).to_pylist()] == [False, True, True]
