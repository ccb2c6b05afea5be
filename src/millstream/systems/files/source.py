"""Files in a folder, read as they appear: JSON, CSV, text and Parquet."""

from __future__ import annotations

import glob
import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from millstream.errors import fault
from millstream.model.dataset import Codec, CsvOptions
from millstream.model.schema import Schema
from millstream.settings.secret import revealed
from millstream.systems.record import format_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Literal

    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError

FORMATS = ("json", "csv", "text", "parquet")
_END = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Files:
    """New files of a folder: one JSON object, CSV record or text per line, or Parquet rows.

    A path is read once. A file that is replaced or truncated later is reported, not read again.
    """

    path: str
    format: str = "json"
    schema: str | StructType = "value STRING"
    csv: CsvOptions = field(default_factory=CsvOptions)
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Spark's own, such as maxFilesPerTrigger, maxBytesPerTrigger or recursiveFileLookup."""

    @property
    def codec(self) -> Codec:
        """Lines are decoded and numbered; Parquet rows are typed already."""
        if self.format == "parquet":
            return Codec("rows")
        decoded = cast("Literal['json', 'csv', 'text']", self.format)
        csv = self.csv if self.format == "csv" else None
        return Codec(decoded, csv=csv, number_lines=True)

    def missing(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A path that does not exist."""
        if "://" not in self.path and not (os.path.exists(self.path) or glob.glob(self.path)):
            yield fault("PATH_MISSING", at=at, source=source, path=self.path)

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist, or an option that is not used."""
        if self.format not in FORMATS:
            yield format_fault(f"source {source!r}", self.format, FORMATS, at)
        if self.csv.multiline and self.format in FORMATS and self.format != "csv":
            yield fault(
                "OPTION_UNUSED",
                at=at,
                source=source,
                option="csv.multiline",
                value=True,
                by=f"format={self.format!r}",
                fix="set format='csv', or leave csv.multiline out",
            )
        if self._is_multiline and "lineSep" in self.options:
            yield fault(
                "OPTION_UNUSED",
                at=at,
                source=source,
                option="options.lineSep",
                value=self.options["lineSep"],
                by="csv.multiline=True",
                fix="leave options.lineSep out: lines end with LF or CRLF",
            )

    @property
    def _is_multiline(self) -> bool:
        return self.format == "csv" and self.csv.multiline

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Nothing more to try: the path was looked at."""

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the folder as a stream."""
        # By default Spark passes over files that are a week older than the newest it has read.
        aged = {"maxFileAge": "36500d"}
        return self._open(spark, lambda session: session.readStream.options(**aged))

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:  # noqa: ARG002
        """Open the files that are there."""
        return self._open(spark, lambda session: session.read)

    def _open(
        self,
        spark: SparkSession,
        reader: Callable[[SparkSession], DataStreamReader | DataFrameReader],
    ) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        options = {name: revealed(value) for name, value in self.options.items()}
        if self.codec.format == "rows":
            schema = StructType.fromJson(json.loads(Schema.parse(self.schema).to_json()))
            rows = reader(spark).options(**options).schema(schema).parquet(self._pattern)
            return rows.select("*", _origin(), F.col("_metadata.row_index").alias("_position"))
        is_whole = self.format == "csv" and self.csv.reads_whole_files
        session = _without_splits(spark) if is_whole else spark
        if self._is_multiline:
            # By default a CR ends a line, too, and nobody could tell which of them it was.
            options["lineSep"] = "\n"
        lines = reader(session).options(**options).format("text").load(self._pattern)
        columns = ("value", _origin(), F.lit(None).cast("long").alias("_position"))
        return _in_session(spark, lines).select(*columns)

    @property
    def _pattern(self) -> str:
        """The path as Spark takes it; one that exists is meant as it is written."""
        if "://" in self.path:
            return revealed(self.path)
        # Spark's working folder is where its JVM was started, which may be another by now.
        path = os.path.abspath(revealed(self.path))
        return re.sub(r"[][{}*?\\]", r"\\\g<0>", path) if os.path.exists(path) else path


def _without_splits(spark: SparkSession) -> SparkSession:
    """Open a session that never cuts a file in two: its lines are understood together."""
    from pyspark.sql import SparkSession

    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    session.conf.set("spark.sql.files.openCostInBytes", str(2**40))
    session.conf.set("spark.sql.files.maxPartitionBytes", str(2**40))
    return session


def _in_session(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Let a frame be used in a session; its files are read as in the one it was opened in."""
    from pyspark.sql import DataFrame

    jvm: Any = spark.sparkContext._jvm
    plan = frame._jdf.queryExecution().analyzed()
    dataset = getattr(jvm, "org.apache.spark.sql.classic.Dataset").ofRows(
        spark._jsparkSession, plan
    )
    return DataFrame(dataset, spark)


def _origin() -> Column:
    """The file, by its plain path if it is local; a later block of it by its first byte, too."""
    from pyspark.sql import functions as F

    url, start = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    # To Spark a plus is a blank; and only a path with something to decode pays for it.
    decoded = F.url_decode(F.replace(url, F.lit("+"), F.lit("%2B")))
    path = F.when(F.contains(url, F.lit("%")), decoded).otherwise(url)
    path = F.when(F.startswith(url, F.lit("file:/")), path.substr(6, _END)).otherwise(path)
    return F.when(start > 0, F.concat(path, F.lit("@"), start)).otherwise(path).alias("_origin")
