"""A source of the user's own, which can be asked for the same records again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from millstream.systems.record_source import RecordSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Offset = Mapping[str, Any]

_RECORDS = "value BINARY, _origin STRING, _position BIGINT"


class Reader(Protocol):
    """What a source must implement; an offset is a dict of numbers, texts and such dicts."""

    def earliest(self) -> Offset:
        """Return where to begin."""
        ...

    def latest(self, start: Offset) -> Offset:
        """Return the offset to read up to now, `start` if there is nothing new."""
        ...

    def read(self, start: Offset, end: Offset) -> Iterable[str | bytes]:
        """Return the records after one offset and up to another: the same at every call."""
        ...


@dataclass(frozen=True, slots=True)
class Custom(RecordSource):
    """Records of a reader you write; exactly once, if it returns the same records at every call.

    Check that with `millstream.testing.contract.check_source`. The reader is sent to Spark's
    Python workers, so it keeps no open connection: each call opens one.
    """

    reader: Reader = field(compare=False, repr=False)
    format: str = "json"
    schema: str | StructType = "value STRING"

    def read(self, spark: SparkSession, place: Path) -> DataFrame:
        """Open the records as a stream."""
        name = f"millstream_{place.name}"
        spark.dataSource.register(_data_source(name, self.reader))
        return spark.readStream.format(name).load()


def _data_source(name: str, reader: Reader) -> Any:
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Stream(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark calls it
            return dict(reader.earliest())

        def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802, ARG002
            return dict(reader.latest(start))

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            return [InputPartition((start, end))] if start != end else []

        def read(self, partition: InputPartition) -> Iterator[tuple[bytes, str, int]]:
            start, end = partition.value
            for number, record in enumerate(reader.read(start, end)):
                raw = record.encode() if isinstance(record, str) else record
                yield raw, str(end), number

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return _RECORDS

        def streamReader(self, schema: object) -> Stream:  # noqa: N802, ARG002
            return Stream()

    return Source
