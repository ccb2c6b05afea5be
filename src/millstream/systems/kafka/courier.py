"""Topics of Kafka: a notice is a record."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from millstream.alert.destination import NotSentError
from millstream.errors import concealed, fault
from millstream.settings.secret import revealed
from millstream.systems.kafka.topic import RecordFormat, Topic as Store

if TYPE_CHECKING:
    from millstream.model.notice import Notice
    from millstream.systems.kafka.settings import Kafka

_WITHIN_S = 30.0
_CLIENT = logging.getLogger("millstream.kafka")
"""What the client logs about unreachable brokers is reported once, as the reason; not on stderr."""
_CLIENT.addHandler(logging.NullHandler())
_CLIENT.propagate = False


class TopicCourier:
    """Sends notices to one topic; its key is what the alert is about.

    Raises:
        StoreFailedError: An option is none that Kafka's client has.
    """

    def __init__(self, topic: Kafka) -> None:
        try:
            from confluent_kafka import KafkaException, Producer
        except ImportError as error:
            raise fault(
                "EXTRA_MISSING", what="ms.Kafka", module="confluent_kafka", extra="kafka"
            ) from error
        store = Store(
            topic.topic, topic.bootstrap_servers, RecordFormat("json"), options=topic.options
        )
        self._topic = revealed(topic.topic)
        ours = {"enable.idempotence": True, "message.timeout.ms": int(_WITHIN_S * 1000)}
        try:
            self._producer = Producer({**ours, **store.client}, logger=_CLIENT)
        except KafkaException as error:
            why = concealed(error.args[0].str())
            raise fault("STORE_FAILED", store=store.place("").name, why=why) from None

    def send(self, notice: Notice) -> None:
        """Send a record, and wait until the brokers have it.

        Raises:
            NotSentError: They may not have it.
        """
        failed: list[Any] = []
        self._producer.produce(
            self._topic,
            notice.body,
            notice.key.encode(),
            headers={"Idempotency-Key": notice.id},
            on_delivery=lambda error, _: failed.append(error),
        )
        self._producer.flush(_WITHIN_S)
        if not failed or failed[0] is not None:
            why = failed[0].str() if failed else f"no answer within {_WITHIN_S:g} s"
            reason = f"topic {self._topic!r}: {why}"
            raise NotSentError(reason)

    def close(self) -> None:
        """Nothing is left to send."""
