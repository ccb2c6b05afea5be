"""Reading stored datasets, as they are or as they were."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.errors import fault
from millstream.lake.log import first_version

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.lake.home import Home

_FEW_FILES = 32
"""Spark finds more of them with a job."""
_SPECIAL = frozenset("*?[]{}\\:")
"""Characters that Spark reads as a pattern or an address in a path."""


def read_table(
    spark: SparkSession, home: Home, name: str, *, version: int | None = None
) -> DataFrame:
    """Read a table with Spark, now or at a version.

    Raises:
        UNKNOWN_TABLE: There is no such table.
        UNKNOWN_VERSION: The table has no such version.
    """
    path = home.existing(name)
    if version is not None:
        version = existing_version(path, name, version)
    return read_snapshot(spark, path, version)


def read_snapshot(spark: SparkSession, path: Path, version: int | None = None) -> DataFrame:
    """Read all rows of a table, now or at a version.

    Delta has Spark run jobs to find the files of a version: a second for each. A table of few
    files is read by their names.
    """
    if files := _few_files(DeltaTable(str(path), version=version), path):
        schema, names = files
        return spark.read.schema(schema).parquet(*names)
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(str(path))


def _few_files(table: DeltaTable, path: Path) -> tuple[StructType, list[str]] | None:
    """Name the files of a table that consists of nothing else; None if there are none or many."""
    actions: Any = table.get_add_actions()
    features = {*(table.protocol().reader_features or ())} - {"timestampNtz"}
    asks_more = features or table.metadata().partition_columns
    if asks_more or not 0 < actions.num_rows <= _FEW_FILES or _SPECIAL & {*str(path)}:
        return None
    from pyspark.sql.types import StructType

    names = [str(path / name.as_py()) for name in actions.column("path")]
    return StructType.fromJson(json.loads(table.schema().to_json())), names


def existing_version(path: Path, name: str, version: int) -> int:
    """Make sure that a table has a version.

    Raises:
        UNKNOWN_VERSION: It has not.
    """
    first, latest = first_version(path), DeltaTable(str(path)).version()
    if not first <= version <= latest:
        raise fault("UNKNOWN_VERSION", table=name, version=version, first=first, latest=latest)
    return version


def version_as_of(path: Path, name: str, moment: str) -> int:
    """Give the last version that a table had at a moment.

    Raises:
        UNKNOWN_MOMENT: Its first commit is later, or its last one earlier: as in Delta,
            a version that is not committed yet cannot be read.
        ARGUMENT_REFUSED: The moment cannot be read.
    """
    try:
        asked = datetime.fromisoformat(moment)
    except ValueError as error:
        option, expected = "TIMESTAMP AS OF", "a moment like '2026-01-31 12:00:00'"
        raise fault("ARGUMENT_REFUSED", option=option, value=moment, expected=expected) from error
    asked = asked if asked.tzinfo else asked.replace(tzinfo=UTC)
    commits = _commits(path)
    if not commits or not commits[0][0] <= asked <= commits[-1][0]:
        first, last = (f"{c[0]:%Y-%m-%d %H:%M:%S.%f}" for c in (commits[0], commits[-1]))
        raise fault("UNKNOWN_MOMENT", table=name, moment=moment, first=first, last=last)
    return max(version for at, version in commits if at <= asked)


def _commits(path: Path) -> list[tuple[datetime, int]]:
    """List when each version was committed, as Delta dates it: by its file, always increasing."""
    found: list[tuple[datetime, int]] = []
    last, first = 0, first_version(path)
    for file in sorted((path / "_delta_log").glob("*.json")):
        if file.stem.isdigit() and int(file.stem) >= first:
            last = max(last + 1, file.stat().st_mtime_ns // 1_000_000)
            found.append((datetime.fromtimestamp(last / 1000, UTC), int(file.stem)))
    return found
