"""Files in a folder, read as they appear: JSON, CSV, text, logfmt, Parquet and Avro."""

from __future__ import annotations

import glob
import json
import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from millstream.errors import fault
from millstream.model.codec import Codec, CsvOptions
from millstream.model.record import RecordOptions
from millstream.model.schema import Schema
from millstream.settings.secret import revealed
from millstream.systems.files.failure import refusal, unreadable
from millstream.systems.record_source import format_fault, record_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError

FORMATS = ("json", "csv", "text", "logfmt", "parquet", "avro")
_CONTENT = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
"""What Spark reads of a file as a whole."""
_TYPED = ("parquet", "avro")
_BOUNDING = frozenset(("maxfilespertrigger", "maxbytespertrigger", "latestfirst"))
_END = 2**31 - 1
_PLAIN_NAMES = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
"""Hadoop's own file system takes what is before a colon in a name for a scheme."""


@dataclass(frozen=True, slots=True)
class Files(RecordOptions):
    """New files of a folder: one JSON object, CSV record or text per line, or typed rows.

    A path is read once. A file that is replaced or truncated later is reported, not read again.
    A file that cannot be read is set aside as a whole, and the others land.
    """

    path: str
    format: str = "json"
    schema: str | StructType = "value STRING"
    csv: CsvOptions = field(default_factory=CsvOptions)
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Spark's own, such as maxFilesPerTrigger, maxBytesPerTrigger or recursiveFileLookup."""
    document: bool = False
    """Whether each JSON file is one object, or one array of objects, over any number of lines."""

    bounded_in: ClassVar[Literal["rows", "bytes"]] = "bytes"

    @property
    def codec(self) -> Codec:
        """Lines are decoded and numbered; rows of Parquet and Avro are typed already."""
        if self.format in _TYPED:
            return Codec("rows")
        if self._is_document:
            return Codec("json", record=self.record)
        decoded = cast("Literal['json', 'csv', 'text', 'logfmt']", self.format)
        csv = self.csv if self.format == "csv" else None
        return Codec(decoded, csv=csv, number_lines=True, record=self.record)

    def missing(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A path that does not exist."""
        if "://" not in self.path and not (os.path.exists(self.path) or glob.glob(self.path)):
            yield fault("PATH_MISSING", at=at, source=source, path=self.path)

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist, or an option that is not used."""
        if self.format not in FORMATS:
            yield format_fault(f"source {source!r}", self.format, FORMATS, at)
        yield from record_faults(self, self.schema, source, at)
        for option, value, used in (
            ("csv.multiline", self.csv.multiline, "csv"),
            ("document", self.document, "json"),
        ):
            if value and self.format in FORMATS and self.format != used:
                yield fault(
                    "OPTION_UNUSED",
                    at=at,
                    source=source,
                    option=option,
                    value=True,
                    by=f"format={self.format!r}",
                    fix=f"set format={used!r}, or leave {option} out",
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

    @property
    def _is_document(self) -> bool:
        return self.format == "json" and self.document

    def bounded(self, most: int) -> Files:
        """Return it with batches of so many bytes, unless its options bound them."""
        if _BOUNDING & {option.lower() for option in self.options}:
            return self
        return replace(self, options={**self.options, "maxBytesPerTrigger": most})

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the folder as a stream."""
        # By default Spark passes over files that are a week older than the newest it has read.
        aged = {"maxFileAge": "36500d"}
        return self._open(spark, lambda session: session.readStream.options(**aged), self._pattern)

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:  # noqa: ARG002
        """Open the files that are there."""
        return self._open(spark, lambda session: session.read, self._pattern)

    def read_files(self, spark: SparkSession, paths: Sequence[str]) -> DataFrame:
        """Read some files, as the stream does."""
        # Partitions are named by the folders below the one that the stream reads.
        folder = {} if _is_pattern(self._pattern) else {"basePath": self._pattern}
        found = [path if "://" in path else _escaped(path) for path in paths]
        return self._open(spark, lambda session: session.read.options(**folder), found)

    def refusal(self, path: str) -> str | None:
        """Return why a file is not read; typed rows are compressed inside their files."""
        return None if self.format in _TYPED else refusal(path)

    def unreadable(self, error: BaseException) -> tuple[str, str] | None:
        """Return the file at which reading failed, and why."""
        return unreadable(error)

    def _open(
        self,
        spark: SparkSession,
        reader: Callable[[SparkSession], Any],
        paths: str | list[str],
    ) -> DataFrame:
        options = {name: revealed(value) for name, value in self.options.items()}
        if self._is_multiline:
            # By default a CR ends a line, too, and the record would lose which of them it was.
            options["lineSep"] = "\n"
        options |= _PLAIN_NAMES
        match self.format:
            case "parquet":
                return self._parquet(reader(spark).options(**options), paths)
            case "avro":
                return self._avro(reader(spark).options(**options), paths)
        if self._is_document:
            return _documents(reader(spark).options(**options), paths)
        is_whole = self.format == "csv" and self.csv.reads_whole_files
        session = _without_splits(spark) if is_whole else spark
        lines = reader(session).options(**options).format("text").load(paths)
        return _in_session(spark, lines).select("value", _origin(), _no_position())

    def _parquet(self, reader: Any, paths: str | list[str]) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        schema = StructType.fromJson(json.loads(self._fields.to_json()))
        rows: DataFrame = reader.schema(schema).format("parquet").load(paths)
        position = F.col("_metadata.row_index").alias("_position")
        return rows.select(*self._columns, _origin(), position)

    def _avro(self, reader: Any, paths: str | list[str]) -> DataFrame:
        from pyspark.sql import functions as F

        from millstream.landing.decode import decoded_schema
        from millstream.systems.files.avro_container import rows

        files: DataFrame = reader.schema(_CONTENT).format("binaryFile").load(paths)
        contents = files.select(F.col("content").alias("value"), _origin())
        decoded = contents.mapInArrow(rows(self._fields), decoded_schema(self._fields))
        return decoded.select(*self._columns, "_reason", "_raw", "_origin", "_position")

    @property
    def _fields(self) -> Schema:
        """What typed rows are read as, before their columns are renamed."""
        return self.fields_of(Schema.parse(self.schema))

    @property
    def _columns(self) -> list[Column]:
        from millstream.operators.columns import quoted

        names = zip(self._fields.names, Schema.parse(self.schema).names, strict=True)
        return [quoted(field).alias(column) for field, column in names]

    @property
    def _pattern(self) -> str:
        """The path as Spark takes it; one that exists is meant as it is written."""
        if "://" in self.path:
            return revealed(self.path)
        # Spark's working folder is where its JVM was started, which may be another by now.
        path = os.path.abspath(revealed(self.path))
        return _escaped(path) if os.path.exists(path) else path


def _escaped(path: str) -> str:
    """Write a path so that Hadoop takes no part of it for a pattern."""
    return re.sub(r"[][{}*?\\]", r"\\\g<0>", path)


def _is_pattern(path: str) -> bool:
    return re.search(r"(?<!\\)[][{}*?]", path) is not None


def _documents(reader: Any, paths: str | list[str]) -> DataFrame:
    """Read each file as a whole, and cut it into records."""
    from millstream.systems.files.document import RECORDS, records

    files: DataFrame = reader.option("wholetext", "true").format("text").load(paths)
    return files.select("value", _origin()).mapInArrow(records, RECORDS)


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


def _no_position() -> Column:
    from pyspark.sql import functions as F

    return F.lit(None).cast("long").alias("_position")


def _origin() -> Column:
    """The file, by its plain path if it is local; a later block of it by its first byte, too."""
    from pyspark.sql import functions as F

    url, start = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    # To Spark a plus is a blank; and only a path with something to decode pays for it.
    decoded = F.url_decode(F.replace(url, F.lit("+"), F.lit("%2B")))
    path = F.when(F.contains(url, F.lit("%")), decoded).otherwise(url)
    path = F.when(F.startswith(url, F.lit("file:/")), path.substr(6, _END)).otherwise(path)
    return F.when(start > 0, F.concat(path, F.lit("@"), start)).otherwise(path).alias("_origin")
