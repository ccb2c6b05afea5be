"""Kafka read directly: a batch is a range of offsets of each partition, recorded in the journal."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.core.rdd import PipelinedRDD

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark import RDD, SparkContext

    from millstream.dstream.context import StreamingContext
    from millstream.dstream.events import Events
    from millstream.dstream.sources import OpenSource
    from millstream.dstream.stream import DStream

    Decoder = Callable[[bytes | None], Any]

_ANSWERS_WITHIN_S = 10.0
_POLL_S = 0.2
_AT_ONCE = 1000
_OF_JAVA = ("key.deserializer", "value.deserializer", "enable.auto.commit")
"""Settings of Java's client that have no meaning here."""
_EARLIEST = ("smallest", "earliest", "beginning")


@dataclass(frozen=True)
class TopicAndPartition:
    """A partition of a topic."""

    topic: str
    partition: int


@dataclass(frozen=True)
class OffsetRange:
    """What a batch has of one partition."""

    topic: str
    partition: int
    fromOffset: int
    """The first offset."""
    untilOffset: int
    """The offset after the last."""

    def topicAndPartition(self) -> TopicAndPartition:
        """Return the partition."""
        return TopicAndPartition(self.topic, self.partition)

    def count(self) -> int:
        """Count the offsets; those of markers of transactions are among them."""
        return self.untilOffset - self.fromOffset


@dataclass(frozen=True)
class KafkaMessageAndMetadata:
    """A record, as a `messageHandler` gets it."""

    topic: str
    partition: int
    offset: int
    key: Any
    message: Any


class KafkaRDD(PipelinedRDD[Any, Any]):
    """The records of a batch: one partition for each range of offsets."""

    def __init__(self, prev: RDD[Any], func: Any, ranges: Sequence[OffsetRange]) -> None:
        super().__init__(prev, func)
        self._ranges = list(ranges)

    def offsetRanges(self) -> list[OffsetRange]:
        """Return the ranges, in the order of the partitions of this RDD."""
        return self._ranges


def utf8_decoder(s: bytes | None) -> str | None:
    """Decode UTF-8; None stays None."""
    return None if s is None else s.decode("utf-8")


class KafkaUtils:
    """Streams of Kafka topics."""

    @staticmethod
    def createDirectStream(  # noqa: PLR0913 - the signature that pyspark had
        ssc: StreamingContext,
        topics: Sequence[str],
        kafkaParams: Mapping[str, Any],
        fromOffsets: Mapping[TopicAndPartition, int] | None = None,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
        messageHandler: Callable[[KafkaMessageAndMetadata], Any] | None = None,
    ) -> DStream[Any]:
        """Read topics without a receiver: pairs of key and value, or what a handler returns.

        The first function of `transform` or `foreachRDD` on this stream gets an RDD that has
        `offsetRanges()`. A program that continues in its home continues at the offsets of the last
        batch that was planned there.

        Args:
            ssc: The context.
            topics: Names of topics.
            kafkaParams: Settings of the client; `bootstrap.servers` or `metadata.broker.list` among
                them. `auto.offset.reset` says where the first run begins: `earliest` or `latest`.
            fromOffsets: Where the first run begins, for some partitions.
            keyDecoder: Makes a key of its bytes.
            valueDecoder: Makes a value of its bytes.
            messageHandler: Makes an element of a record.

        Raises:
            EXTRA_MISSING: The package for Kafka is not installed.
        """
        client = _module("confluent_kafka")
        del client
        settings = {k: v for k, v in kafkaParams.items() if k not in _OF_JAVA}
        if "metadata.broker.list" in settings:
            settings["bootstrap.servers"] = settings.pop("metadata.broker.list")
        begin_at = {(p.topic, p.partition): o for p, o in (fromOffsets or {}).items()}
        reset = str(settings.pop("auto.offset.reset", "latest"))
        handle = messageHandler or _pair
        source = KafkaSource(
            tuple(topics),
            settings,
            begin_at,
            reset in _EARLIEST,
            partial(_read, settings, keyDecoder, valueDecoder, handle),
        )
        return ssc._add_source("createDirectStream", source)


@dataclass(frozen=True, eq=False)
class KafkaSource:
    """Topics, and how their records are read."""

    topics: tuple[str, ...]
    settings: Mapping[str, Any]
    begin_at: Mapping[tuple[str, int], int]
    is_from_earliest: bool
    read: Callable[[Iterator[OffsetRange]], Iterator[Any]]

    def open(
        self,
        context: SparkContext,
        place: Path,  # noqa: ARG002
        parts: Sequence[Any],
        events: Events,  # noqa: ARG002
    ) -> OpenSource:
        """Continue where the last batch ended."""
        return _OpenKafka(self, context, parts[-1] if parts else None)


class _OpenKafka:
    def __init__(self, source: KafkaSource, context: SparkContext, last: Any) -> None:
        self._source, self._context = source, context
        self._kafka, self._of_admin = _module("confluent_kafka"), _module("confluent_kafka.admin")
        self._admin = self._of_admin.AdminClient(dict(source.settings))
        self._next: dict[tuple[str, int], int] = {}
        if last is not None:
            self._next = {(topic, partition): until for topic, partition, _, until in last}
        else:
            kind = "earliest" if source.is_from_earliest else "latest"
            self._next = {**self._offsets(kind), **source.begin_at}

    def plan(self) -> list[list[Any]]:
        ends = self._offsets("latest")
        # A partition that was added since begins at its first record.
        part = [[*of, self._next.get(of, 0), end] for of, end in sorted(ends.items())]
        self._next = ends
        return part

    def rdd(self, part: Any) -> RDD[Any]:
        ranges = [OffsetRange(*each) for each in part]
        read = self._source.read
        given = self._context.parallelize(ranges, max(1, len(ranges)))
        return KafkaRDD(given, lambda _, each: read(each), ranges)

    def rows(self, part: Any) -> int:
        return sum(OffsetRange(*each).count() for each in part)

    def forget(self, part: Any) -> None: ...

    def close(self) -> None: ...

    def _offsets(self, kind: str) -> dict[tuple[str, int], int]:
        known = self._admin.list_topics(timeout=_ANSWERS_WITHIN_S).topics
        spec = getattr(self._of_admin.OffsetSpec, kind)()
        asked = {
            self._kafka.TopicPartition(topic, partition): spec
            for topic in self._source.topics
            for partition in known[topic].partitions
        }
        found = self._admin.list_offsets(
            asked,
            isolation_level=self._kafka.IsolationLevel.READ_COMMITTED,
            request_timeout=_ANSWERS_WITHIN_S,
        )
        return {(of.topic, of.partition): int(f.result().offset) for of, f in found.items()}


def _pair(record: KafkaMessageAndMetadata) -> tuple[Any, Any]:
    return record.key, record.message


def _read(
    settings: Mapping[str, Any],
    key_of: Decoder,
    value_of: Decoder,
    handle: Callable[[KafkaMessageAndMetadata], Any],
    ranges: Iterable[OffsetRange],
) -> Iterator[Any]:
    """Read ranges, on a worker."""
    for wanted in ranges:
        for record in _records(settings, wanted) if wanted.count() else ():
            yield handle(
                KafkaMessageAndMetadata(
                    wanted.topic,
                    wanted.partition,
                    record.offset(),
                    key_of(record.key()),
                    value_of(record.value()),
                )
            )


def _records(settings: Mapping[str, Any], wanted: OffsetRange) -> Iterator[Any]:
    kafka = _module("confluent_kafka")
    consumer = kafka.Consumer(
        {
            "group.id": "millstream",
            **settings,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # Records that are not there any more are an error, not a reason to begin elsewhere.
            "auto.offset.reset": "error",
        }
    )
    place = kafka.TopicPartition(wanted.topic, wanted.partition, wanted.fromOffset)
    try:
        consumer.assign([place])
        until = time.monotonic() + _ANSWERS_WITHIN_S
        while True:
            records = consumer.consume(_AT_ONCE, _POLL_S)
            for record in records:
                error = record.error()
                is_end = error is not None and error.code() == kafka.KafkaError._PARTITION_EOF
                if record.offset() >= wanted.untilOffset or is_end:
                    return
                if error is not None:
                    raise kafka.KafkaException(error)
                yield record
            if records:
                # Only now: whoever reads the records may have taken long.
                until = time.monotonic() + _ANSWERS_WITHIN_S
            # After the last record there may be markers of transactions, which are no records.
            [position] = consumer.position([place])
            if position.offset >= wanted.untilOffset:
                return
            if time.monotonic() > until:
                raise TimeoutError(f"no record of {wanted} within {_ANSWERS_WITHIN_S} s")  # noqa: TRY003
    finally:
        consumer.close()


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise fault(
            "EXTRA_MISSING", what="KafkaUtils", module="confluent_kafka", extra="kafka"
        ) from error
