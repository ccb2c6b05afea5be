from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, strategies as st

from millstream.lake.backlog import Backlog, backlog, rows_between

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
