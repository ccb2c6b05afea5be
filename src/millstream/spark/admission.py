"""How much the sources of a running query read at most, changed between its batches.

Spark takes such limits from the options of a source when a query starts. It keeps them in a map,
and reads that map again for every batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from millstream.spark.nodes import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    Unit = Literal["rows", "bytes", "files"]
    Limit = tuple[Unit, int]

ALL_FILES = 2**31 - 1

_WRITTEN: Mapping[Unit, str] = {"rows": "MaxRows", "bytes": "MaxBytes", "files": "MaxFiles"}


class Admitted:
    """The sources of a running query, in the order of its offsets."""

    def __init__(self, query: StreamingQuery, spark: SparkSession) -> None:
        self._execution: Any = query._jsq.streamingQuery()
        jvm: Any = spark.sparkContext._jvm
        self._limits = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
        self._sources = listed(self._execution.sources())

    @property
    def units(self) -> list[Unit | None]:
        """What each source is limited in; None for one that knows no limit we set."""
        known: dict[str, Unit] = {
            "DeltaSource": "files",
            "KafkaMicroBatchStream": "rows",
            "FileStreamSource": "bytes",
        }
        return [known.get(str(source.getClass().getSimpleName())) for source in self._sources]

    def table(self, number: int) -> str:
        """Return the path of the Delta table that a source reads."""
        return str(self._sources[number].deltaLog().dataPath().toUri().getPath())

    def limit(self, number: int) -> str:
        """Return the limit of a source, as `as_spark_writes` does."""
        return str(self._execution.uniqueSources().apply(self._sources[number]).toString())

    def set(self, limits: Mapping[int, Limit]) -> None:
        """Set the limits of some sources for the next batch; to be called while a batch runs."""
        found = self._execution.uniqueSources()
        for number, limit in limits.items():
            found = found.updated(self._sources[number], self._read_limit(*limit))
        getattr(self._execution, "uniqueSources_$eq")(found)

    def _read_limit(self, unit: Unit, most: int) -> Any:
        match unit:
            case "rows":
                return self._limits.maxRows(most)
            case "bytes":
                return self._limits.maxBytes(most)
        return self._limits.maxFiles(min(most, ALL_FILES))


def as_spark_writes(unit: Unit, most: int) -> str:
    """Return the text that Spark shows for a limit."""
    return f"{_WRITTEN[unit]}: {most}"
