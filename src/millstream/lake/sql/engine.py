"""The same queries, answered by Spark: what has no translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import SparkRefusedSqlError
from millstream.lake.sql.parse import verify_reads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.lake.home import Home


def query_with_spark(
    spark: SparkSession, home: Home, text: str
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Answer a query with Spark; give the column names and the rows.

    Raises:
        SqlNotReadingError: It is not one reading statement.
        SparkRefusedSqlError: Spark does not answer it.
    """
    from pyspark.errors import PySparkException

    verify_reads(text)
    named = [name for name in home.tables if name.lower() in text.lower()]
    for name in named:
        spark.sql(f"DROP TABLE IF EXISTS `{name}`")
        spark.sql(f"CREATE TABLE `{name}` USING delta LOCATION '{home.existing(name)}'")
    try:
        answer = spark.sql(text.strip().rstrip(";")).toArrow()
    except PySparkException as error:
        cause = str(error).splitlines()[0]
        raise SparkRefusedSqlError(cause=cause, known=home.tables) from error
    columns = [column.to_pylist(maps_as_pydicts="strict") for column in answer.columns]
    return tuple(answer.column_names), list(zip(*columns, strict=True))
