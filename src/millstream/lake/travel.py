"""Reading stored datasets, as they are or as they were."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from millstream.errors import ArgumentRefusedError, UnknownMomentError, UnknownVersionError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.lake.home import Home


def read_table(
    spark: SparkSession, home: Home, name: str, *, version: int | None = None
) -> DataFrame:
    """Read a table with Spark, now or at a version.

    Raises:
        UnknownTableError: There is no such table.
        UnknownVersionError: The table has no such version.
    """
    path = home.existing(name)
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", existing_version(path, name, version))
    return reader.load(str(path))


def existing_version(path: Path, name: str, version: int) -> int:
    """Make sure that a table has a version.

    Raises:
        UnknownVersionError: It has not.
    """
    latest = DeltaTable(str(path)).version()
    if not 0 <= version <= latest:
        raise UnknownVersionError(name, version=version, latest=latest)
    return version


def version_as_of(path: Path, name: str, moment: str) -> int:
    """Give the last version that a table had at a moment.

    Raises:
        UnknownMomentError: Its first commit is later, or its last one earlier: as Delta has it,
            what is not committed yet cannot be asked for.
        ArgumentRefusedError: The moment cannot be read.
    """
    try:
        asked = datetime.fromisoformat(moment)
    except ValueError as error:
        option, expected = "TIMESTAMP AS OF", "a moment like '2026-01-31 12:00:00'"
        raise ArgumentRefusedError(option, moment, expected=expected) from error
    asked = asked if asked.tzinfo else asked.replace(tzinfo=UTC)
    commits = _commits(path)
    if not commits or not commits[0][0] <= asked <= commits[-1][0]:
        first, last = (f"{c[0]:%Y-%m-%d %H:%M:%S.%f}" for c in (commits[0], commits[-1]))
        raise UnknownMomentError(name, moment=moment, first=first, last=last)
    return max(version for at, version in commits if at <= asked)


def _commits(path: Path) -> list[tuple[datetime, int]]:
    """List when each version was committed, as Delta tells it: by its file, and ever later."""
    found: list[tuple[datetime, int]] = []
    last = 0
    for file in sorted((path / "_delta_log").glob("*.json")):
        if file.stem.isdigit():
            last = max(last + 1, file.stat().st_mtime_ns // 1_000_000)
            found.append((datetime.fromtimestamp(last / 1000, UTC), int(file.stem)))
    return found
