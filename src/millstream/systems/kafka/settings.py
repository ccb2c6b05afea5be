"""Kafka topics: read from the offsets in the checkpoint, and written to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from millstream.errors import closest, fault
from millstream.model.dataset import AvroOptions, Codec
from millstream.model.schema import Schema
from millstream.serve.option import named
from millstream.settings.secret import parts_of, revealed
from millstream.systems.address import guarded_options
from millstream.systems.avro import AvroFiles, avro_faults, read_avro
from millstream.systems.kafka.topic import WRITTEN, Records, Topic
from millstream.systems.record import format_fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
    from pyspark.sql.types import StructType

    from millstream.errors import Location, MillstreamError
    from millstream.model.destination import Courier
    from millstream.model.trigger import Trigger

FORMATS = ("json", "avro", "text", "raw")
RAW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
"""What Kafka itself knows of a record."""

_ANSWER_WITHIN_MS = 10_000
_AS_IN_BATCHES = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How times are written, so that records do not depend on the trigger."""


@dataclass(frozen=True, slots=True)
class Kafka:
    """The values of a topic: JSON, Avro or text; or raw, with key, headers and timestamp.

    Only committed records are read, and lost offsets stop the source instead of being skipped.
    As a sink, an answer's rows become records: JSON of all columns, or of `value` alone if text;
    raw ones need Kafka's own columns. Avro is read, not written. In batches a batch is a
    transaction; without batches, in real time, Spark itself writes, at least once.
    """

    topic: str
    bootstrap_servers: str = "localhost:9092"
    format: str = "json"
    schema: str | StructType = "value STRING"
    """Of JSON, Avro and text; raw records have Kafka's own columns."""
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Spark's own options, such as maxOffsetsPerTrigger, and `kafka.…` for Kafka's client."""
    key: Sequence[str] = ()
    """Of a sink: the columns whose values are the key of a record."""
    delete_when: str | None = None
    """Of a sink, a condition in SQL: a row that meets it becomes a tombstone for its key."""
    envelope: Literal["debezium"] | None = None
    """Of a sink: whether a value tells what became of the row, with `before`, `after` and `op`."""
    avro: AvroOptions = field(default_factory=AvroOptions)
    """Of a source whose format is Avro."""
    _read: AvroFiles = field(init=False, compare=False, repr=False, default=AvroFiles())

    row_wise: ClassVar[tuple[str, ...]] = ("realtime", "continuous")

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", named(self.key))
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
        decoded = cast("Literal['json', 'avro', 'text']", self.format)
        return Codec(decoded, avro=self._read.schemas)

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A format that does not exist, or Avro that cannot become the columns of the schema."""
        if self.format not in FORMATS:
            yield format_fault(f"source {source!r}", self.format, FORMATS, at)
        if self.format == "avro":
            yield from avro_faults(self._read, self.schema, source, at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:
        """Ask the broker for the topic.

        Raises:
            BROKER_UNREACHABLE: No broker answers.
            TOPIC_MISSING: The topic does not exist.
        """
        self._reach(spark, f"source {source!r}", at)

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Ask the broker for the topic.

        Raises:
            BROKER_UNREACHABLE: No broker answers.
            TOPIC_MISSING: The topic does not exist.
        """
        self._reach(spark, f"serve {serve!r}", at)

    def _reach(self, spark: SparkSession, dataset: str, at: Location) -> None:
        from py4j.protocol import Py4JJavaError

        try:
            admin = self._admin(spark)
        except Py4JJavaError as error:
            raise fault(
                "BROKER_UNREACHABLE",
                at=at,
                servers=self.bootstrap_servers,
                dataset=dataset,
                why=f": {_root_cause(error)}",
            ) from error
        try:
            topics = set(admin.listTopics().names().get())
        except Py4JJavaError as error:
            raise fault(
                "BROKER_UNREACHABLE", at=at, servers=self.bootstrap_servers, dataset=dataset, why=""
            ) from error
        finally:
            admin.close()
        if self.topic not in topics:
            raise fault(
                "TOPIC_MISSING",
                at=at,
                dataset=dataset,
                topic=self.topic,
                servers=self.bootstrap_servers,
                nearest=closest(self.topic, sorted(topics)),
            )

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the topic as a stream."""
        said = {"startingOffsets": self.starting_offsets, "failOnDataLoss": "true"}
        return self._records(spark.readStream, {**said, **self._spark_options})

    def sample(self, spark: SparkSession, rows: int) -> DataFrame:  # noqa: ARG002
        """Give what the topic holds, from its beginning."""
        return self._records(spark.read, {**self._spark_options, "startingOffsets": "earliest"})

    def _records(
        self, reader: DataStreamReader | DataFrameReader, options: Mapping[str, str | int | bool]
    ) -> DataFrame:
        from pyspark.sql import functions as F

        common: dict[str, str | int | bool] = {
            "kafka.bootstrap.servers": revealed(self.bootstrap_servers),
            "subscribe": revealed(self.topic),
            "kafka.isolation.level": "read_committed",
            "includeHeaders": True,
        }
        records = reader.format("kafka").options(**{**common, **options}).load()
        partition = F.concat_ws("/", "topic", "partition")
        names = Schema.parse(RAW).names if self.format == "raw" else ("value",)
        return records.select(
            *names, partition.alias("_origin"), F.col("offset").alias("_position")
        )

    def tasks(self, spark: SparkSession) -> int:
        """Count the partitions: without batches each has a task that never ends."""
        jvm: Any = spark.sparkContext._jvm
        admin = self._admin(spark)
        try:
            topics = jvm.java.util.Collections.singleton(revealed(self.topic))
            described = admin.describeTopics(topics).allTopicNames().get()
            return int(described.get(revealed(self.topic)).partitions().size())
        finally:
            admin.close()

    def in_batches(self) -> Topic:
        """Give the topic as a store, which a batch is written to exactly once."""
        records, key = Records(self.format, self.envelope), tuple(self.key)
        servers = self.bootstrap_servers
        return Topic(self.topic, servers, records, key, self.delete_when, self.options)

    @property
    def told_at(self) -> tuple[str, ...]:
        """What it is known by as a destination of alerts."""
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

        columns = {"value": F.col("value")}
        if self.format == "json":
            columns["value"] = F.to_json(F.struct("*"), _AS_IN_BATCHES)
        if key := self.key:
            one, several = F.col(key[0]).cast("string"), F.to_json(F.struct(*key), _AS_IN_BATCHES)
            columns["key"] = one if len(key) == 1 else several
        elif self.format == "raw":
            columns |= {name: F.col(name) for name in ("key", "headers") if name in frame.columns}
        records = frame.select(*(column.alias(name) for name, column in columns.items()))
        options = {
            "kafka.bootstrap.servers": revealed(self.bootstrap_servers),
            "topic": revealed(self.topic),
            **self._spark_options,
        }
        writer = records.writeStream.format("kafka")
        return writer.options(includeHeaders="headers" in columns, **options)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The brokers, as host:port."""
        return parts_of(self.bootstrap_servers)

    @property
    def _spark_options(self) -> dict[str, str | int | bool]:
        return {name: revealed(value) for name, value in self.options.items()}

    def _admin(self, spark: SparkSession) -> Any:
        jvm: Any = spark.sparkContext._jvm
        settings = jvm.java.util.HashMap()
        settings.put("bootstrap.servers", revealed(self.bootstrap_servers))
        for name in ("request.timeout.ms", "default.api.timeout.ms"):
            settings.put(name, str(_ANSWER_WITHIN_MS))
        for name, value in self._spark_options.items():
            if name.startswith("kafka."):
                settings.put(name.removeprefix("kafka."), str(value))
        return jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)


def _root_cause(error: Any) -> str:
    thrown = error.java_exception
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    return str(thrown.getMessage())
