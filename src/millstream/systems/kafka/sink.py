"""Kafka topics as stores: a batch and its fence are records of one transaction.

Nothing can be read inside a Kafka transaction. So the fence is read when a driver starts, after the
broker has accepted its producer: from then on no other producer can write under this name, and the
fence stays valid until the broker reports that another producer has taken over.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.errors import StoreUnreachableError
from millstream.lake.fence import Decision, on_change, refuse_overtaken
from millstream.serve.fence import admit_batch, take_fence
from millstream.serve.shape import GONE
from millstream.serve.store import Refused, WriteResult, salvage, split_keyless
from millstream.systems.kafka.broker import Cluster, translating_errors
from millstream.systems.kafka.record import Encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from millstream.lake.fence import Fence, PendingBatch
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Rows, Settle
    from millstream.systems.kafka.record import Message
    from millstream.systems.kafka.topic import Topic

Answer = TypeVar("Answer")

_TRIES = 3
_PAUSE_S = 0.2
_STARTS_WITHIN_S = 30.0
_ENDS_WITHIN_S = 60.0
_GIVES_UP_WITHIN_S = 5.0
_LOOK_EVERY_S = 5.0
"""How long a topic is assumed not to have been replaced."""
_CHUNK = 5_000
_WAITING = 200_000
"""Records that may wait to be sent."""
_WAITING_BYTES = 1 << 28
_PRODUCER = {
    "enable.idempotence": True,
    "transaction.timeout.ms": 300_000,
    "delivery.timeout.ms": 30_000,
    "linger.ms": 5,
    # As Kafka's own clients and Spark choose the partition of a key.
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 2_097_151,
    "batch.num.messages": 100_000,
}
_RECORD = 512
"""Bytes that a record takes besides its key and value, at most."""


class TopicStore:
    """A topic open for writing."""

    def __init__(self, sink: Topic, shape: Shape, driver: Driver) -> None:
        self.place = sink.place(shape.dataset)
        self._sink, self._shape, self._driver = sink, shape, driver
        self._name = f"{driver.writer} > {sink.name}"
        self._encoder = Encoder(sink.records, shape, driver.writer)
        self._cluster = Cluster(sink, self.place, shape, self._name)
        self._producer: Any = None
        self._held: Fence | None = None
        self._topic = self._cluster.topic_id()
        self._look_again_at = 0.0
        self._cluster.make_fences()

    def take(self) -> Fence:
        """Shut earlier drivers out, and write this driver's epoch among the fences."""
        # A driver that may not take the topic must not shut out the one that is running. What is
        # read while another is running may lack its last batch: missing batches mean nothing yet.
        candidate = replace(self._driver, committed=-1)
        self._retrying(lambda: take_fence(self._read(settled=False), candidate, self.place))
        return self._retrying(self._take)

    def fence(self) -> Fence | None:
        """Read the fence; connect again if the connection broke."""
        return self._retrying(self._look)

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Write a batch and its fence in one transaction; again, if the connection broke.

        A commit whose reply was lost may have happened: the fence shows it after the reconnect.
        """
        return self._retrying(lambda: self._write(pending, rows, settle))

    def close(self) -> None:
        """End the connection; what is not committed is not written."""
        self._leave()

    def _retrying(self, act: Callable[[], Answer]) -> Answer:
        for left in reversed(range(_TRIES)):
            try:
                return act()
            except StoreUnreachableError:
                self._leave()
                if left == 0:
                    raise
                time.sleep(_PAUSE_S * 2 ** (_TRIES - left))
            except BaseException:
                self._leave()
                raise
        raise AssertionError

    def _take(self) -> Fence:
        if self._producer is None:
            self._start_producer()
        fence = take_fence(self._read(), self._driver, self.place)
        with translating_errors(self._cluster):
            self._producer.begin_transaction()
            self._commit(fence)
        return fence

    def _look(self) -> Fence | None:
        if self._producer is None:
            return self._reconnect()
        return self._read()

    def _reconnect(self) -> Fence | None:
        """Connect again, unless another driver has taken over."""
        self._refuse_if_overtaken(self._read(settled=False))
        self._start_producer()
        self._held = held = self._read()
        self._refuse_if_overtaken(held)
        return held

    def _refuse_if_overtaken(self, held: Fence | None) -> None:
        claim = self._driver.claim
        refuse_overtaken(on_change(held, claim), held, claim, self.place.name)

    def _read(self, *, settled: bool = True) -> Fence | None:
        """Read the fence; ignore the batch of a topic that was since deleted and created again."""
        self._topic = self._cluster.topic_id()
        found = self._cluster.read_fence(settled=settled)
        if found is None:
            return None
        fence, topic = found
        if topic == self._topic:
            return fence
        return replace(fence, checkpoint="", batch=-1, digest="", note="")

    def _start_producer(self) -> None:
        """Start a producer; the broker aborts and fences an earlier one of this name."""
        room = {"message.max.bytes": max(self._cluster.largest_record() - _RECORD, 1000)}
        settings = {**_PRODUCER, **room, **self._sink.client, "transactional.id": self._id}
        self._producer = self._cluster.producer(settings)
        with translating_errors(self._cluster):
            self._producer.init_transactions(_STARTS_WITHIN_S)

    @property
    def _id(self) -> str:
        return f"millstream {self._name}"

    def _write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        if self._producer is None:
            self._reconnect()
        held = self._held
        if held is not None and self._is_another_topic():
            held = replace(held, batch=-1)
        held, decision = admit_batch(held, self._driver, pending, self.place)
        if decision is not Decision.APPLY:
            return WriteResult(decision, held)
        with translating_errors(self._cluster):
            self._producer.begin_transaction()
            refused = self._produce(rows, pending.batch)
            fence = held.with_batch(pending, settle(refused))
            self._commit(fence)
        return WriteResult(decision, fence, tuple(refused))

    def _is_another_topic(self) -> bool:
        if time.monotonic() < self._look_again_at:
            return False
        self._look_again_at = time.monotonic() + _LOOK_EVERY_S
        return self._cluster.topic_id() != self._topic

    def _commit(self, fence: Fence) -> None:
        self._cluster.put_fence(self._producer, fence, self._topic)
        self._producer.commit_transaction(_ENDS_WITHIN_S)
        self._held = fence

    def _produce(self, rows: Rows, batch: int) -> list[Refused]:
        refused, waiting = list[Refused](), 0

        def send(rows: pa.Table) -> None:
            refused.extend(self._send(rows, *self._encoder.messages(rows, batch)))

        for part in rows():
            kept, lacking = (
                split_keyless(part, self._shape.key) if self._needs_key(part) else (part, [])
            )
            refused += lacking
            for first in range(0, kept.num_rows, _CHUNK):
                chunk = kept.slice(first, _CHUNK)
                refused += salvage(chunk, send)
                waiting += chunk.nbytes
                if waiting > _WAITING_BYTES or len(self._producer) > _WAITING:
                    self._producer.flush(_ENDS_WITHIN_S)
                    waiting = 0
                self._producer.poll(0)
        return refused

    def _needs_key(self, rows: pa.Table) -> bool:
        return self._shape.mode != "append" or GONE in rows.column_names

    def _send(
        self, rows: pa.Table, messages: list[Message], numbers: Sequence[int]
    ) -> list[Refused]:
        if "headers" in (messages[0] if messages else ()):
            self._send_one_by_one(messages)
        elif self._producer.produce_batch(self._sink.name, messages) == len(messages):
            return []
        refused = []
        for message, number in zip(messages, numbers, strict=True):
            if error := message.get("_error"):
                if not self._cluster.is_of_a_record(error):
                    self._cluster.raise_for(error)
                row = rows.slice(number, 1)
                if GONE in row.column_names:
                    row = row.drop_columns([GONE])
                refused.append(Refused(row, error.str()))
        return refused

    def _send_one_by_one(self, messages: list[Message]) -> None:
        """Send records with headers, which a batch cannot have."""
        from confluent_kafka import KafkaException

        for message in messages:
            try:
                self._producer.produce(self._sink.name, **message)
            except KafkaException as error:
                message["_error"] = error.args[0]

    def _leave(self) -> None:
        """Abort the transaction, if one is open, and close the connection."""
        from confluent_kafka import KafkaException

        producer, self._producer = self._producer, None
        self._cluster.leave()
        if producer is not None:
            try:
                producer.purge()
                producer.abort_transaction(_GIVES_UP_WITHIN_S)
            except KafkaException:
                # None is open, or the broker is gone: it aborts what is open when a driver starts.
                return
