"""Kafka topics: what users write of them, and which source, sink and courier they have."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from millstream.errors import fault
from millstream.model.codec import AvroOptions, Codec, CsvOptions
from millstream.model.record import RecordOptions
from millstream.serve.option import as_names
from millstream.settings.secret import parts_of, revealed
from millstream.systems.address import guarded_options
from millstream.systems.kafka.avro import AvroFiles, avro_faults, read_avro
from millstream.systems.kafka.source import RAW, TopicSource
from millstream.systems.kafka.topic import WRITTEN, RecordFormat, Topic
from millstream.systems.record_reading import unused_option
from millstream.systems.record_source import format_fault, record_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError
    from millstream.model.destination import Courier
    from millstream.model.trigger import Trigger


FORMATS = ("json", "csv", "avro", "text", "logfmt", "raw")
_AS_IN_BATCHES = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How times are written, so that records do not depend on the trigger."""


@dataclass(frozen=True, slots=True)
class Kafka(RecordOptions):
    """The values of a topic in a format; or raw, with key, headers and timestamp.

    Only committed records are read, and lost offsets stop the source instead of being skipped.
    As a sink, an answer's rows become records: JSON of all columns, or of `value` alone if text;
    raw ones need Kafka's own columns. Avro is read, not written. In batches a batch is a
    transaction; without batches, in real time, Spark itself writes, at least once.
    """

    topic: str
    bootstrap_servers: str = "localhost:9092"
    format: str = "json"
    schema: str | StructType = "value STRING"
    """Of all formats but one; raw records have Kafka's own columns."""
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Spark's own options, such as maxOffsetsPerTrigger, and `kafka.…` for Kafka's client."""
    key: Sequence[str] = ()
    """Of a sink: the columns whose values are the key of a record."""
    delete_when: str | None = None
    """Of a sink, a condition in SQL: a row that meets it becomes a tombstone for its key."""
    envelope: Literal["debezium"] | None = None
    """Of a sink: whether a value describes the change, with `before`, `after` and `op`."""
    avro: AvroOptions = field(default_factory=AvroOptions)
    """Of a source whose format is Avro."""
    csv: CsvOptions = field(default_factory=CsvOptions)
    """Of a source whose format is CSV: a value is a record, and may contain newlines in quotes."""
    _read: AvroFiles = field(init=False, compare=False, repr=False, default=AvroFiles())

    row_wise: ClassVar[tuple[str, ...]] = ("realtime", "continuous")
    bounded_in: ClassVar[Literal["rows", "bytes"]] = "rows"

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", as_names(self.key))
        object.__setattr__(self, "options", guarded_options(self.options))
        if self.format == "avro":
            object.__setattr__(self, "_read", read_avro(self.avro))
        if self.format == "raw":
            object.__setattr__(self, "schema", RAW)

    @property
    def codec(self) -> Codec:
        """Values are decoded, unless they are wanted raw; their position is the offset."""
        if self.format == "raw":
            return Codec("rows")
        decoded = cast("Literal['json', 'csv', 'avro', 'text', 'logfmt']", self.format)
        csv = self.csv if self.format == "csv" else None
        return Codec(decoded, csv=csv, avro=self._read.schemas, record=self.record)

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist, or Avro that cannot become the columns of the schema."""
        if self.format not in FORMATS:
            yield format_fault(f"source {source!r}", self.format, FORMATS, at)
        yield from record_faults(self, self.schema, source, at)
        if self.csv.reads_whole_files:
            option = "csv.header" if self.csv.header else "csv.multiline"
            fix = f"leave {option} out: each value is a record, without a header"
            yield unused_option(source, option, value=True, by="ms.Kafka", fix=fix, at=at)
        if self.format == "avro":
            yield from avro_faults(self._read, self.schema, self, source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Ask the broker for the topic.

        Raises:
            BROKER_UNREACHABLE: No broker answers.
            TOPIC_MISSING: The topic does not exist.
        """
        TopicSource(self).reach(spark, f"source {source!r}", at)

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Ask the broker for the topic.

        Raises:
            BROKER_UNREACHABLE: No broker answers.
            TOPIC_MISSING: The topic does not exist.
        """
        TopicSource(self).reach(spark, f"serve {serve!r}", at)

    def bounded(self, most: int) -> Kafka:
        """Return it with a batch of so many records, unless its options bound them."""
        if any("OffsetsPerTrigger" in option for option in self.options):
            return self
        return replace(self, options={**self.options, "maxOffsetsPerTrigger": most})

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the topic as a stream."""
        return TopicSource(self).read(spark)

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:  # noqa: ARG002
        """Return what the topic holds, from its beginning."""
        return TopicSource(self).sample(spark)

    def tasks(self, spark: SparkSession) -> int:
        """Count the partitions: without batches each has a task that never ends."""
        return TopicSource(self).partitions(spark)

    def in_batches(self) -> Topic:
        """Return the topic as a store, to which each batch is written exactly once."""
        records, key = RecordFormat(self.format, self.envelope), tuple(self.key)
        servers = self.bootstrap_servers
        return Topic(self.topic, servers, records, key, self.delete_when, self.options)

    @property
    def identified_by(self) -> tuple[str, ...]:
        """What identifies it as a destination of alerts."""
        return revealed(self.topic), revealed(self.bootstrap_servers)

    def alert_faults(self, alert: str, at: Location) -> Iterator[MillstreamError]:
        """Whether the topic is there is known when the first notice is sent."""
        del alert, at
        return iter(())

    def courier(self, place: Path) -> Courier:
        """Open a producer; nothing is kept in the home."""
        from millstream.systems.kafka.courier import TopicCourier

        del place
        return TopicCourier(self)

    def guarantee(self, trigger: Trigger) -> str:
        """Records arrive once; without batches at least once: Spark sends again what is retried."""
        if not trigger.is_row_wise:
            return self.in_batches().guarantee(trigger)
        return f"at least once, keyed by {', '.join(self.key)}" if self.key else "at least once"

    def sink_faults(self, serve: str, at: Location) -> Iterator[MillstreamError]:
        """A format that cannot be written, or what Spark's own sink cannot do."""
        for option in ("delete_when", "envelope"):
            if getattr(self, option):
                why = f"Spark itself writes there without batches, and it knows no {option}"
                use = f"leave {option} out, or run it with a trigger that has batches"
                yield fault("STORE_MODE", at=at, serve=serve, store="Kafka", why=why, use=use)
        if self.format not in WRITTEN:
            yield format_fault(f"serve {serve!r}", self.format, WRITTEN, at)

    def columns(self) -> tuple[str, ...]:
        """The key; and what text and raw records are made of."""
        return (*self.key, *(() if self.format == "json" else ("value",)))

    def types(self) -> Mapping[str, tuple[str, ...]]:
        """What text and raw records can be made of."""
        return self.in_batches().types()

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Give Spark's writer to the topic."""
        from pyspark.sql import functions as F

        from millstream.operators.columns import quoted

        columns = {"value": F.col("value")}
        if self.format == "json":
            columns["value"] = F.to_json(F.struct("*"), _AS_IN_BATCHES)
        if key := self.key:
            whole = F.struct(*map(quoted, key))
            one, several = quoted(key[0]).cast("string"), F.to_json(whole, _AS_IN_BATCHES)
            columns["key"] = one if len(key) == 1 else several
        elif self.format == "raw":
            columns |= {name: F.col(name) for name in ("key", "headers") if name in frame.columns}
        records = frame.select(*(column.alias(name) for name, column in columns.items()))
        options = {
            "kafka.bootstrap.servers": revealed(self.bootstrap_servers),
            "topic": revealed(self.topic),
            **self.spark_options,
        }
        writer = records.writeStream.format("kafka")
        return writer.options(includeHeaders="headers" in columns, **options)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The brokers, as host:port."""
        return parts_of(self.bootstrap_servers)

    @property
    def spark_options(self) -> dict[str, str | int | bool]:
        """The options as Spark gets them."""
        return {name: revealed(value) for name, value in self.options.items()}
