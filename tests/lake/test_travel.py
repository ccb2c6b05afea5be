"""A table is read by its files, or as Delta does: the rows are the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millstream.lake import travel

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def rows(n: int, **more: object) -> pa.Table:
    at, plain = [NOON], [NOON.replace(tzinfo=None)]
    named = {name: [value] for name, value in more.items()}
    times = {"at": pa.array(at, pa.timestamp("us", "UTC")), "plain": pa.array(plain)}
    return pa.table({"n": [n], "text": [None if n % 2 else "ü"], **times, **named})


@pytest.mark.spark
def test_every_version_is_read_as_delta_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    simple, odd, parted = tmp_path / "a b", tmp_path / "odd {1,2}", tmp_path / "parted"
    for n in range(3):
        write_deltalake(str(simple), rows(n), mode="append")
        write_deltalake(str(odd), rows(n), mode="append")
        write_deltalake(str(parted), rows(n), mode="append", partition_by=["text"])
    write_deltalake(str(simple), rows(3, added=1.5), mode="append", schema_mode="merge")
    write_deltalake(str(odd), rows(4).slice(1), mode="overwrite")

    for path in (simple, odd, parted):
        for version in (None, 1):
            reader = spark.read.format("delta")
            as_of = reader if version is None else reader.option("versionAsOf", version)
            wanted = as_of.load(str(path))
            found = travel.read_snapshot(spark, path, version)
            assert found.dtypes == wanted.dtypes, (path, version)
            assert sorted(found.collect(), key=str) == sorted(wanted.collect(), key=str)


@pytest.mark.spark
def test_many_files_are_left_to_delta(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        write_deltalake(str(tmp_path / "t"), rows(n), mode="append")
    monkeypatch.setattr(travel, "_FEW_FILES", 2)

    assert travel.read_snapshot(spark, tmp_path / "t").count() == 3
    assert travel.read_snapshot(spark, tmp_path / "t", 1).count() == 2
