"""Kafka topics read by Spark from the offsets in the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import closest, fault
from millstream.model.schema import Schema
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from millstream.errors import Location
    from millstream.systems.kafka.settings import Kafka


RAW = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
"""What Kafka itself knows of a record."""

_ANSWER_WITHIN_MS = 10_000
_READ_AT_ONCE = {
    "kafka.max.poll.records": 10_000,
    "kafka.max.partition.fetch.bytes": 8 << 20,
    "kafka.fetch.max.bytes": 64 << 20,
}
"""How much a task reads at once: Kafka's own defaults cost the broker four times the work."""
_TIMEOUTS = {"kafka.request.timeout.ms": 5_000, "kafka.default.api.timeout.ms": 5_000}
"""After which a broker is lost. Kafka refuses one without the other if they contradict."""
_GIVES_UP = {"kafkaConsumer.pollTimeoutMs": 8_000, "fetchOffset.numRetries": 1}
"""So that no task waits for a lost broker while others need its slot; the query starts again."""


class TopicSource:
    """A topic, as Spark reads it."""

    def __init__(self, topic: Kafka) -> None:
        self._topic = topic

    def reach(self, spark: SparkSession, dataset: str, at: Location) -> None:
        """Ask the broker for the topic, which the dataset reads or writes.

        Raises:
            BROKER_UNREACHABLE: No broker answers.
            TOPIC_MISSING: The topic does not exist.
        """
        from py4j.protocol import Py4JJavaError

        try:
            admin = self._admin(spark)
        except Py4JJavaError as error:
            raise fault(
                "BROKER_UNREACHABLE",
                at=at,
                servers=self._topic.bootstrap_servers,
                dataset=dataset,
                why=f": {_root_cause(error)}",
            ) from error
        try:
            topics = set(admin.listTopics().names().get())
        except Py4JJavaError as error:
            raise fault(
                "BROKER_UNREACHABLE",
                at=at,
                servers=self._topic.bootstrap_servers,
                dataset=dataset,
                why="",
            ) from error
        finally:
            admin.close()
        if self._topic.topic not in topics:
            raise fault(
                "TOPIC_MISSING",
                at=at,
                dataset=dataset,
                topic=self._topic.topic,
                servers=self._topic.bootstrap_servers,
                nearest=closest(self._topic.topic, sorted(topics)),
            )

    def read(self, spark: SparkSession) -> DataFrame:
        """Open the topic as a stream."""
        defaults = {"startingOffsets": self._topic.starting_offsets, "failOnDataLoss": "true"}
        return self._records(spark.readStream, {**defaults, **self._topic.spark_options})

    def sample(self, spark: SparkSession) -> DataFrame:
        """Return what the topic holds, from its beginning."""
        options = {**self._topic.spark_options, "startingOffsets": "earliest"}
        return self._records(spark.read, options)

    def partitions(self, spark: SparkSession) -> int:
        """Count the partitions."""
        jvm: Any = spark.sparkContext._jvm
        admin = self._admin(spark)
        try:
            topics = jvm.java.util.Collections.singleton(revealed(self._topic.topic))
            described = admin.describeTopics(topics).allTopicNames().get()
            return int(described.get(revealed(self._topic.topic)).partitions().size())
        finally:
            admin.close()

    def _records(
        self, reader: DataStreamReader | DataFrameReader, options: Mapping[str, str | int | bool]
    ) -> DataFrame:
        from pyspark.sql import functions as F

        records = reader.format("kafka").options(**{**self.options, **options}).load()
        partition = F.concat_ws("/", "topic", "partition")
        names = Schema.parse(RAW).names if self._topic.format == "raw" else ("value",)
        return records.select(
            *names, partition.alias("_origin"), F.col("offset").alias("_position")
        )

    @property
    def options(self) -> dict[str, str | int | bool]:
        """What a source sets unless the user does."""
        return {
            "kafka.bootstrap.servers": revealed(self._topic.bootstrap_servers),
            "subscribe": revealed(self._topic.topic),
            "kafka.isolation.level": "read_committed",
            "includeHeaders": True,
            **_READ_AT_ONCE,
            **_GIVES_UP,
            **({} if _TIMEOUTS.keys() & self._topic.options.keys() else _TIMEOUTS),
        }

    def _admin(self, spark: SparkSession) -> Any:
        jvm: Any = spark.sparkContext._jvm
        settings = jvm.java.util.HashMap()
        settings.put("bootstrap.servers", revealed(self._topic.bootstrap_servers))
        for name in ("request.timeout.ms", "default.api.timeout.ms"):
            settings.put(name, str(_ANSWER_WITHIN_MS))
        for name, value in self._topic.spark_options.items():
            if name.startswith("kafka."):
                settings.put(name.removeprefix("kafka."), str(value))
        return jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)


def _root_cause(error: Any) -> str:
    thrown = error.java_exception
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    return str(thrown.getMessage())
