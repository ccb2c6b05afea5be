"""Topics of Kafka, open: a batch and its fence are records of one transaction.

Nothing can be read inside a transaction of Kafka. So the fence is read when a driver comes, after
its producer was let in: from then on the broker lets nobody else write under this name, and what
was read stays true until the broker says that another producer came.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.errors import StoreUnreachableError, fault
from millstream.lake.fence import Decision, on_change
from millstream.serve.fence import admitted, taken
from millstream.serve.shape import GONE
from millstream.serve.store import Refused, Written, keyed, salvage
from millstream.systems.kafka.broker import Cluster, told
from millstream.systems.kafka.record import Encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from millstream.lake.fence import Fence, Turn
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Rows, Settle
    from millstream.systems.kafka.record import Message
    from millstream.systems.kafka.topic import Topic

Answer = TypeVar("Answer")

_TRIES = 3
_PAUSE_S = 0.2
_COMES_WITHIN_S = 30.0
_ENDS_WITHIN_S = 60.0
_GIVES_UP_WITHIN_S = 5.0
_LOOK_EVERY_S = 5.0
"""How long a topic is taken for the one that it was."""
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


class Log:
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
        # Who has no right to come must not shut out the one that is at work. What is read while
        # others are at work may lack the last batch, so that a lack of batches says nothing yet.
        coming = replace(self._driver, committed=-1)
        self._again(lambda: taken(self._read(settled=False), coming, self.place))
        return self._again(self._take)

    def fence(self) -> Fence | None:
        """Look at the fence; if the line broke, come again."""
        return self._again(self._look)

    def write(self, turn: Turn, rows: Rows, settle: Settle) -> Written:
        """Write a batch and its fence in one transaction; again, if the line broke.

        A commit whose answer was lost may have happened: the fence tells when the driver is back.
        """
        return self._again(lambda: self._write(turn, rows, settle))

    def close(self) -> None:
        """End the connection; what is not committed is not written."""
        self._leave()

    def _again(self, act: Callable[[], Answer]) -> Answer:
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
            self._come()
        fence = taken(self._read(), self._driver, self.place)
        with told(self._cluster):
            self._producer.begin_transaction()
            self._commit(fence)
        return fence

    def _look(self) -> Fence | None:
        if self._producer is None:
            return self._come_back()
        return self._read()

    def _come_back(self) -> Fence | None:
        """Be let in again, unless another driver has come."""
        self._refuse_if_overtaken(self._read(settled=False))
        self._come()
        self._held = held = self._read()
        self._refuse_if_overtaken(held)
        return held

    def _refuse_if_overtaken(self, held: Fence | None) -> None:
        if held is not None and on_change(held, self._driver.claim) is Decision.OVERTAKEN:
            raise fault(
                "OVERTAKEN", theirs=held.epoch, mine=self._driver.epoch, table=self.place.name
            )

    def _read(self, *, settled: bool = True) -> Fence | None:
        """Read the fence; of a topic that was made anew, it says nothing."""
        self._topic = self._cluster.topic_id()
        found = self._cluster.read_fence(settled=settled)
        if found is None:
            return None
        fence, topic = found
        if topic == self._topic:
            return fence
        return replace(fence, checkpoint="", batch=-1, digest="", note="")

    def _come(self) -> None:
        """Have the broker end what an earlier producer of this name began, and shut it out."""
        room = {"message.max.bytes": max(self._cluster.largest_record() - _RECORD, 1000)}
        settings = {**_PRODUCER, **room, **self._sink.client, "transactional.id": self._id}
        self._producer = self._cluster.producer(settings)
        with told(self._cluster):
            self._producer.init_transactions(_COMES_WITHIN_S)

    @property
    def _id(self) -> str:
        return f"millstream {self._name}"

    def _write(self, turn: Turn, rows: Rows, settle: Settle) -> Written:
        if self._producer is None:
            self._come_back()
        held = self._held
        if held is not None and self._is_another_topic():
            held = replace(held, batch=-1)
        held, decision = admitted(held, self._driver, turn, self.place)
        if decision is not Decision.APPLY:
            return Written(decision, held)
        with told(self._cluster):
            self._producer.begin_transaction()
            refused = self._produce(rows, turn.batch)
            fence = held.with_batch(turn, settle(refused))
            self._commit(fence)
        return Written(decision, fence, tuple(refused))

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
            kept, lacking = keyed(part, self._shape.key) if self._needs_key(part) else (part, [])
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
        """Give up the transaction, if one is open, and the connection."""
        from confluent_kafka import KafkaException

        producer, self._producer = self._producer, None
        self._cluster.leave()
        if producer is not None:
            try:
                producer.purge()
                producer.abort_transaction(_GIVES_UP_WITHIN_S)
            except KafkaException:
                # None is open, or the broker is gone: it ends what was begun when a driver comes.
                return
