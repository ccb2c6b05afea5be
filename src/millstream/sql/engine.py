"""The same queries, answered by Spark: what has no translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import fault, listed
from millstream.sql.frontier import COLUMNS, FRONTIER, frontier_rows
from millstream.sql.parse import verify_reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from millstream.lake.home import Home


def query_with_spark(
    spark: SparkSession, home: Home, text: str
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Answer a query with Spark; give the column names and the rows.

    Raises:
        SQL_NOT_READING: It is not one reading statement.
        SPARK_REFUSED_SQL: Spark does not answer it.
    """
    verify_reads(text)
    register(spark, home, [name for name in home.tables if name.lower() in text.lower()])
    if FRONTIER in text.lower():
        register_frontier(spark, home)
    return answer(spark, text, known=home.tables)


def register(spark: SparkSession, home: Home, names: Iterable[str]) -> None:
    """Let Spark know tables of a home by their names."""
    for name in names:
        spark.sql(f"DROP TABLE IF EXISTS `{name}`")
        spark.sql(f"CREATE TABLE `{name}` USING delta LOCATION '{home.existing(name)}'")


def register_frontier(spark: SparkSession, home: Home) -> None:
    """Let Spark know up to when the tables of a home are complete, as of now."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    spark.createDataFrame(frontier_rows(home), columns).createOrReplaceTempView(FRONTIER)


def answer(
    spark: SparkSession, text: str, *, known: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Answer a query on tables that Spark knows.

    Raises:
        SPARK_REFUSED_SQL: Spark does not answer it.
    """
    from pyspark.errors import PySparkException

    try:
        found = spark.sql(text.strip().rstrip(";")).toArrow()
    except PySparkException as error:
        raise fault(
            "SPARK_REFUSED_SQL", cause=str(error).strip().splitlines()[0], known=listed(known)
        ) from error
    columns = [column.to_pylist(maps_as_pydicts="strict") for column in found.columns]
    return tuple(found.column_names), list(zip(*columns, strict=True))
