from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings, strategies as st
from tests.systems.test_table_source import committed

from millstream.lake.backlog import Backlog, backlog, rows_between, snapshot_backlog
from millstream.lake.compaction import FileSizes, compact, plan
from millstream.lake.files import DataFile
from millstream.lake.log import Facts
from millstream.lake.stored import stored_files

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SIZES = (3, 1, 4, 1, 5)


def written(folder: Path) -> Path:
    """Write a version of each size, with a file of the odd and one of the even numbers."""
    for size in SIZES:
        rows = pa.table({"n": range(size), "odd": [n % 2 for n in range(size)]})
        write_deltalake(folder, rows, partition_by=["odd"], mode="append")
    return folder


def test_whole_versions_are_counted_up_to_a_number_of_rows(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    table = written(tmp_path_factory.mktemp("table"))

    @given(st.integers(0, len(SIZES)), st.integers(1, 20))
    def check(first: int, most: int) -> None:
        fitting = [n for n in range(first + 1, 6) if n == first + 1 or sum(SIZES[first:n]) <= most]
        end = max(fitting, default=first)

        found = backlog(table, first, most_rows=most)

        files = sum(min(size, 2) for size in SIZES[first:end])
        assert found == Backlog(files, sum(SIZES[first:end]))
        assert rows_between(table, first, end) == found.rows

    check()


def test_a_version_that_only_compacts_files_counts_nothing(tmp_path: Path) -> None:
    table = written(tmp_path)
    DeltaTable(table).optimize.compact()
    write_deltalake(table, pa.table({"n": [1], "odd": [1]}), mode="append")

    assert backlog(table, len(SIZES), most_rows=100) == Backlog(files=1, rows=1)


def test_there_is_no_backlog_before_the_log_begins_and_after_it_ends(tmp_path: Path) -> None:
    table = written(tmp_path)
    (table / "_delta_log" / f"{0:020d}.json").unlink()

    assert backlog(table, 0, most_rows=100) == Backlog()
    assert backlog(table, len(SIZES), most_rows=100) == Backlog()


def numbers_in(file: Path) -> list[int]:
    return [int(number or 0) for number in pq.read_table(file)["n"].to_pylist()]


def files_of(place: Path, batch: int, sizes: list[int]) -> list[DataFile]:
    """Write a file of so many rows each, all with the number of the batch."""
    place.mkdir(exist_ok=True)
    found = []
    for number, size in enumerate(sizes):
        file = place / f"{batch}-{number}.parquet"
        pq.write_table(pa.table({"n": pa.array([batch] * size, pa.int64())}), file)
        found.append(DataFile.read(file, {}))
    return found


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.integers(1, 4), max_size=3), min_size=1, max_size=9),
    st.integers(1, 12),
    st.integers(2, 6),
)
def test_a_snapshot_is_read_in_whole_batches_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], most: int, together: int
) -> None:
    home = tmp_path_factory.mktemp("home")
    table = committed(home, "clean", "n BIGINT")
    for batch, sizes in enumerate(batches, 1):
        table.append(files_of(home / "s", batch, sizes), Facts("q", batch=batch))
    staging = home / "staging"
    staging.mkdir()
    for group in plan(stored_files(table.snapshot()), FileSizes(together=together)):
        compact(table, group, staging)

    # Spark's order, by what the log says of the files.
    adds: Any = DeltaTable(str(table.path)).get_add_actions()
    log = zip(*(adds.column(c).to_pylist() for c in ("modification_time", "path")), strict=True)
    order = [path for _, path in sorted(log)]
    first, seen, reads = 0, -1, []
    while (found := snapshot_backlog(table.path, first, most_rows=most)).files:
        per_file = [numbers_in(table.path / name) for name in order[first : first + found.files]]
        numbers = [number for of_file in per_file for number in of_file]
        assert len(numbers) == found.rows
        assert min(numbers) > seen, "an earlier batch, or a part of one that was begun"
        for fewer in range(1, len(per_file)) if len(numbers) > most else ():
            before, after = chain(*per_file[:fewer]), chain(*per_file[fewer:])
            assert max(before) >= min(after), "it could have been shorter"
        first, seen = first + found.files, max(numbers)
        reads.append(found.rows)
    assert first == len(order)
    assert sum(reads) == sum(map(sum, batches))


def test_a_snapshot_with_files_of_another_program_is_read_as_a_whole(tmp_path: Path) -> None:
    table = committed(tmp_path, "clean", "n BIGINT")
    table.append(files_of(tmp_path / "s", 1, [2]), Facts("q", batch=1))
    write_deltalake(table.path, pa.table({"n": [1, 2, 3]}), mode="append")

    total = sum(file.rows for file in stored_files(DeltaTable(str(table.path))))
    assert snapshot_backlog(table.path, 0, most_rows=1) == Backlog(files=2, rows=total)
