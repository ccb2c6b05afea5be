from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.lake.test_delta import files, opened, rows_of

from millstream.lake.log import Facts
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.lake.delta import FencedTable


def checksum(table: Path) -> dict[str, Any]:
    version = DeltaTable(str(table)).version()
    reported: dict[str, Any] = json.loads((table / f"_delta_log/{version:020d}.crc").read_text())
    return reported


def last_action(table: Path, kind: str) -> Any:
    found = None
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            found = json.loads(line).get(kind, found)
    return found


def append(table: FencedTable, *names: str) -> None:
    batch = table.facts.batch + 1
    staged = files(table.path.parent / "staged", [(name, batch) for name in names])
    table.append(staged, Facts("q", batch=batch))


def hold(table: Path) -> None:
    stored = DeltaTable(str(table)).get_add_actions(flatten=True)
    assert checksum(table) == {
        "metadata": last_action(table, "metaData"),
        "protocol": last_action(table, "protocol"),
        "tableSizeBytes": sum(stored.column("size_bytes").to_pylist()),
        "numFiles": stored.num_rows,
        "numMetadata": 1,
        "numProtocol": 1,
    }


def test_every_commit_leaves_its_checksum(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", 1)
    hold(table.path)
    append(table, "a", "b")
    append(table, "c")
    hold(table.path)
    table.upsert(files(tmp_path / "staged", [("a", 7)]), ["k"], Facts("q", batch=2))
    hold(table.path)
    table.replace(files(tmp_path / "staged", [("d", 3)]), Facts("q", batch=3))
    hold(table.path)
    table.take()
    hold(table.path)
    opened(table.path, 2, schema=Schema.parse("k STRING, n BIGINT, m INT").to_json(), evolve=True)
    hold(table.path)


def test_a_table_without_checksums_gets_them(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", 1)
    append(table, "a")
    for old in (table.path / "_delta_log").glob("*.crc"):
        old.unlink()
    append(table, "b")
    hold(table.path)


def test_a_torn_checksum_is_made_again_from_the_commits(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", 1)
    append(table, "a")
    for torn in (table.path / "_delta_log").glob("*.crc"):
        torn.write_text(torn.read_text()[:40])
    append(table, "b")
    hold(table.path)


def test_a_log_that_does_not_contain_enough_gets_none(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", 1)
    append(table, "a")
    log = table.path / "_delta_log"
    for gone in [*log.glob("*.crc"), log / f"{0:020d}.json"]:
        gone.rename(tmp_path / gone.name)
    append(table, "b")
    assert not list(log.glob("*.crc"))


@pytest.mark.spark
def test_spark_believes_it_and_writes_on(spark: SparkSession, tmp_path: Path) -> None:
    # A transaction of Spark's own holds the checksum to the table, and ends if they differ.
    table = opened(tmp_path / "t", 1)
    for name in ("k0", "k1", "k2"):
        append(table, name)
    spark.sql(f"OPTIMIZE delta.`{table.path}`")
    append(table, "z")
    spark.sql(f"DELETE FROM delta.`{table.path}` WHERE k = 'k1'")

    assert rows_of(table.path) == [("k0", 0), ("k2", 2), ("z", 3)]
