"""Reading stored datasets, as they are or as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import DeltaTable

from millstream.errors import UnknownVersionError

if TYPE_CHECKING:
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
    path = str(home.existing(name))
    reader = spark.read.format("delta")
    if version is not None:
        latest = DeltaTable(path).version()
        if not 0 <= version <= latest:
            raise UnknownVersionError(name, version=version, latest=latest)
        reader = reader.option("versionAsOf", version)
    return reader.load(path)
