"""A Kafka cluster, as a store uses it: topics, fences, and what its errors mean."""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from zlib import crc32

from millstream.errors import closest, fault
from millstream.lake.fence import Fence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.serve.fence import Place
    from millstream.serve.shape import Shape
    from millstream.systems.kafka.topic import Topic

FENCES = "millstream-fences"
"""The topic of all fences of a cluster; compacted, so that it does not grow."""
_PARTITIONS = 16
"""A fence is read when no transaction is open in its partition: with many, others seldom are."""
_OF_FENCES = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}
_ANSWERS_WITHIN_S = 10.0
_SETTLES_WITHIN_S = 310.0
"""How long the transaction of another writer, which is dead, may stay open."""
_MARKS_WITHIN_S = 60.0
"""How long the cluster may take to mark the end of a transaction that it has ended."""
_LOOK_EVERY_S = 0.05
_LARGEST_RECORD = 1_048_588
"""The largest record that a broker accepts by default."""


_discarded = logging.Logger("millstream.kafka")
"""Discards the client's own log, which would go to standard error."""
_discarded.addHandler(logging.NullHandler())


class Cluster:
    """A cluster, asked for one topic and its fence."""

    def __init__(self, sink: Topic, place: Place, shape: Shape, name: str) -> None:
        try:
            import confluent_kafka
            from confluent_kafka import admin
        except ImportError as error:
            raise fault(
                "EXTRA_MISSING", what="ms.Kafka", module="confluent_kafka", extra="kafka"
            ) from error
        self.place, self._sink, self._shape, self._name = place, sink, shape, name
        self.partition = 0
        """Where its fence is."""
        self._kafka: Any = confluent_kafka
        self._of_admin: Any = admin
        self._admin_client: Any = None
        self.reported: Any = None
        """The last error that the client reported by itself."""

    @property
    def _admin(self) -> Any:
        if self._admin_client is None:
            self.reported = None
            self._admin_client = self._of_admin.AdminClient({**self._sink.client, **self._quiet})
        return self._admin_client

    def leave(self) -> None:
        """Drop the admin client: after a restart another broker may lead."""
        self._admin_client = None

    @property
    def _quiet(self) -> dict[str, Any]:
        return {"error_cb": self._on_error, "logger": _discarded}

    def _on_error(self, error: Any) -> None:
        self.reported = error

    def producer(self, settings: Mapping[str, Any]) -> Any:
        """Make a producer."""
        with translating_errors(self):
            return self._kafka.Producer({**settings, **self._quiet})

    def topic_id(self) -> str:
        """Return the id of the topic: one that is deleted and created again has another.

        Raises:
            TOPIC_MISSING: There is none.
            StoreUnreachableError: No broker answers.
        """
        of = self._kafka.KafkaError
        with translating_errors(self):
            asked = self._admin.describe_topics(
                self._kafka.TopicCollection([self._sink.name]), request_timeout=_ANSWERS_WITHIN_S
            )
            try:
                return str(asked[self._sink.name].result().topic_id)
            except self._kafka.KafkaException as error:
                if error.args[0].code() != of.UNKNOWN_TOPIC_OR_PART:
                    raise
        with translating_errors(self):
            topics = sorted(self._admin.list_topics(timeout=_ANSWERS_WITHIN_S).topics)
        dataset = f"serve {self._shape.dataset!r}"
        raise fault(
            "TOPIC_MISSING",
            at=self._shape.at,
            dataset=dataset,
            topic=self._sink.name,
            servers=self._sink.servers,
            nearest=closest(self._sink.name, [topic for topic in topics if topic != FENCES]),
        )

    def largest_record(self) -> int:
        """Return how many bytes a record may have; the default if the broker does not say."""
        of = self._of_admin
        asked = of.ConfigResource(of.ResourceType.TOPIC, self._sink.name)
        try:
            [answer] = self._admin.describe_configs(
                [asked], request_timeout=_ANSWERS_WITHIN_S
            ).values()
            return int(answer.result()["max.message.bytes"].value)
        except (self._kafka.KafkaException, KeyError, TypeError):
            return _LARGEST_RECORD

    def make_fences(self) -> None:
        """Create the topic of fences, unless it is there; find the partition of this one."""
        with translating_errors(self):
            found = self._admin.list_topics(timeout=_ANSWERS_WITHIN_S).topics.get(FENCES)
            if not found or not found.partitions:
                self._make_topic_of_fences()
            partitions = len(found.partitions if found else ()) or _PARTITIONS
        self.partition = crc32(self._name.encode()) % partitions

    def _make_topic_of_fences(self) -> None:
        wanted = self._of_admin.NewTopic(
            FENCES, _PARTITIONS, replication_factor=-1, config=_OF_FENCES
        )
        [made] = self._admin.create_topics([wanted], operation_timeout=_ANSWERS_WITHIN_S).values()
        try:
            made.result()
        except self._kafka.KafkaException as error:
            if error.args[0].code() != self._kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def put_fence(self, producer: Any, fence: Fence, topic: str) -> None:
        """Write the fence as part of a transaction."""
        text = json.dumps({**asdict(fence), "topic_id": topic}, sort_keys=True)
        producer.produce(FENCES, key=self._name, value=text, partition=self.partition)

    def read_fence(self, *, settled: bool) -> tuple[Fence, str] | None:
        """Read the last committed fence, and the id of its topic.

        Args:
            settled: Whether to wait for open transactions; only after the broker has aborted those
                of the same name, which otherwise stay open for minutes.
        """
        with translating_errors(self):
            committed = self._kafka.IsolationLevel.READ_COMMITTED
            end = self._settled_end() if settled else self._end(committed)
            last = self._last_value(end) if end else None
        if last is None:
            return None
        recorded = json.loads(last)
        return Fence(**{k: v for k, v in recorded.items() if k != "topic_id"}), recorded["topic_id"]

    def _settled_end(self) -> int:
        """Wait until all transactions begun so far are over; return where they end.

        A fence behind a record of a transaction that is open would not be seen. Those of this
        writer are over: one of them that stays open was ended without a mark, and stays so.

        Raises:
            TRANSACTION_HANGS: One stays open that no producer will end.
        """
        of, began, patience = self._kafka.IsolationLevel, time.monotonic(), _MARKS_WITHIN_S
        end = self._end(of.READ_UNCOMMITTED)
        while (open_at := self._end(of.READ_COMMITTED)) < end:
            if time.monotonic() - began > patience:
                writer = self._writer_at(open_at)
                if writer == self._name or patience == _SETTLES_WITHIN_S:
                    raise fault(
                        "TRANSACTION_HANGS",
                        store=self.place.name,
                        writer=writer,
                        offset=open_at,
                        partition=self.partition,
                        topic=FENCES,
                    )
                patience = _SETTLES_WITHIN_S
            time.sleep(_LOOK_EVERY_S)
        return end

    def _end(self, isolation: Any) -> int:
        where = self._kafka.TopicPartition(FENCES, self.partition)
        [found] = self._admin.list_offsets(
            {where: self._of_admin.OffsetSpec.latest()},
            isolation_level=isolation,
            request_timeout=_ANSWERS_WITHIN_S,
        ).values()
        try:
            return int(found.result().offset)
        except self._kafka.KafkaException as error:
            if error.args[0].code() == self._kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
                return 0
            raise

    def _last_value(self, end: int) -> bytes | None:
        key, last = self._name.encode(), None
        for message in self._messages(0, "read_committed"):
            if message.error() is None:
                last = message.value() if message.key() == key else last
            elif message.offset() >= end:
                break
        return last

    def _writer_at(self, offset: int) -> str:
        """Return the writer of the fence at an offset, committed or not."""
        message = next(self._messages(offset, "read_uncommitted"))
        return (message.key() or b"").decode() if message.error() is None else ""

    def _messages(self, first: int, isolation: str) -> Iterator[Any]:
        """Yield the fences from an offset on, and after the last the end-of-partition error."""
        consumer = self._kafka.Consumer(
            {
                **self._sink.client,
                **self._quiet,
                "group.id": "millstream",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
            }
        )
        try:
            consumer.assign([self._kafka.TopicPartition(FENCES, self.partition, first)])
            until = time.monotonic() + _ANSWERS_WITHIN_S
            while time.monotonic() < until:
                message = consumer.poll(_LOOK_EVERY_S)
                if message is None:
                    continue
                until = time.monotonic() + _ANSWERS_WITHIN_S
                error = message.error()
                if error is not None and error.code() != self._kafka.KafkaError._PARTITION_EOF:
                    self.raise_for(error)
                yield message
        finally:
            consumer.close()
        raise fault(
            "STORE_UNREACHABLE", store=self.place.name, why=f"topic {FENCES!r} cannot be read"
        )

    def is_of_a_record(self, error: Any) -> bool:
        """Return whether an error is about one record, so that others may be accepted."""
        of = self._kafka.KafkaError
        return error.code() in (of.MSG_SIZE_TOO_LARGE, of.INVALID_RECORD)

    def raise_for(self, error: Any) -> None:
        """Raise what an error of Kafka means.

        Raises:
            STORE_LOGIN: The broker does not let this user in.
            StoreFailedError: What is asked for is refused.
            StoreUnreachableError: Anything that may pass.
        """
        of, cause = self._kafka.KafkaError, self._kafka.KafkaException(error)
        if self._admin_client is not None:
            # Only now does the client report what the broker said about the login.
            self._admin_client.poll(0)
        login = (of._AUTHENTICATION, of.SASL_AUTHENTICATION_FAILED)
        if error.code() in login or (self.reported is not None and self.reported.code() in login):
            why = (self.reported or error).str()
            raise fault("STORE_LOGIN", store=self.place.name, why=why) from cause
        refused = (
            of.TOPIC_AUTHORIZATION_FAILED,
            of.CLUSTER_AUTHORIZATION_FAILED,
            of.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            of.INVALID_TRANSACTION_TIMEOUT,
            of.POLICY_VIOLATION,
            of._INVALID_ARG,
        )
        if error.code() in refused:
            raise fault("STORE_FAILED", store=self.place.name, why=error.str()) from cause
        raise fault("STORE_UNREACHABLE", store=self.place.name, why=error.str()) from cause


@contextmanager
def translating_errors(cluster: Cluster) -> Iterator[None]:
    """Translate errors of Kafka into errors of Millstream."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        cluster.raise_for(error.args[0])
