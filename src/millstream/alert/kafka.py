"""Topics of Kafka: a notice is a record."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from millstream.alert.destination import NotToldError
from millstream.errors import ExtraMissingError
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.alert.notice import Notice
    from millstream.model.destination import Topic

_WITHIN_S = 30.0
_OPTION = "kafka."
_CLIENT = logging.getLogger("millstream.kafka")
"""What the client says of brokers that are away is told once, as the reason; not to stderr."""
_CLIENT.addHandler(logging.NullHandler())
_CLIENT.propagate = False


class TopicCourier:
    """Sends notices to one topic; its key is what the alert is about."""

    def __init__(self, topic: Topic) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError as error:
            raise ExtraMissingError("ms.Kafka", module="confluent_kafka", extra="kafka") from error
        options: Mapping[str, Any] = getattr(topic, "options", {})
        own = {k: str(revealed(v)) for k, v in options.items() if k.startswith(_OPTION)}
        self._topic = revealed(topic.topic)
        self._producer = Producer(
            {
                "bootstrap.servers": revealed(topic.bootstrap_servers),
                "enable.idempotence": True,
                "message.timeout.ms": int(_WITHIN_S * 1000),
                **{name.removeprefix(_OPTION): value for name, value in own.items()},
            },
            logger=_CLIENT,
        )

    def tell(self, notice: Notice) -> None:
        """Send a record, and wait until the brokers have it.

        Raises:
            NotToldError: They may not.
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
            told = f"topic {self._topic!r}: {why}"
            raise NotToldError(told)

    def close(self) -> None:
        """Nothing is left to send."""
